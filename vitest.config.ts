import { defineConfig } from "vitest/config"

export default defineConfig({
  resolve: { conditions: ["@toolfold/source", "node", "import", "default"] },
  ssr: { resolve: { conditions: ["@toolfold/source", "node", "import", "default"] } },
  test: { include: ["test/**/*.test.ts"], testTimeout: 30_000 }
})
