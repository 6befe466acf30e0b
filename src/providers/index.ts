/**
 * Providers: joins to the services that run models.
 *
 * @since 0.1.0
 */
export * as AiSdk from "./AiSdk.ts"
export * as OpenAiCompatible from "./OpenAiCompatible.ts"
