// Who answers as recorded? A server on this machine, and models of each API that are pointed at it.
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as AiSdk from "toolfold/providers/AiSdk"
import * as OpenAiCompatible from "toolfold/providers/OpenAiCompatible"
import { type Api, type Exchange, type Json, object } from "./data.ts"
import { chunks } from "./said.ts"

export interface Answer {
  readonly status: number
  readonly type: string
  readonly headers: { readonly [name: string]: string }
  readonly text: string
}

export type Chat = Pick<OpenAiCompatible.Options, "body" | "rulesOf">

export interface Host {
  /** What it is to say next, and from now on. */
  readonly say: (answers: ReadonlyArray<Answer>) => void
  /** The bodies that it was sent since. */
  readonly sent: ReadonlyArray<Json>
  /** A model of it; `chat` is what our own client is told beside. */
  readonly model: (api: Api, name: string, chat?: Chat) => Layer.Layer<LanguageModel.LanguageModel>
  readonly close: () => void
}

/** A recorded answer, as the server gives it. */
export const answer = (exchange: Exchange): Answer => {
  const { body, headers, status, streamed, text } = exchange
  // Gemini streams a list of JSON where nobody asks for events; the client asks for events.
  const stream = text ?? (Array.isArray(body) && status === 200
    ? chunks(exchange).map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join("")
    : undefined)
  const kept = Object.entries(headers).filter(([name]) =>
    !/^(content-(length|encoding|type)|transfer-encoding)$/.test(name)
  )
  return {
    status,
    type: stream !== undefined && streamed ? "text/event-stream" : "application/json",
    headers: Object.fromEntries(kept),
    text: stream ?? JSON.stringify(body)
  }
}

export const serve = async (): Promise<Host> => {
  let next: Array<Answer> = []
  const sent: Array<Json> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => {
      body += chunk
    })
    request.on("end", () => {
      sent.push(object(JSON.parse(body)))
      const { headers, status, text, type } = next.shift() ??
        { headers: {}, status: 500, type: "application/json", text: '{"error":{"message":"nothing more is recorded"}}' }
      response.writeHead(status, { ...headers, "content-type": type }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const anthropic = createAnthropic({ baseURL, apiKey: "recorded" })
  const openai = createOpenAI({ baseURL, apiKey: "recorded" })
  const google = createGoogleGenerativeAI({ baseURL, apiKey: "recorded" })
  return {
    say: (answers) => {
      next = answers.slice()
      sent.length = 0
    },
    sent,
    model: (api, name, chat = {}) => {
      switch (api) {
        case "anthropic":
          return AiSdk.layer(anthropic(name))
        case "gemini":
          return AiSdk.layer(google(name.replace(/^.*\//, "")))
        case "openai-responses":
          // The thoughts go back themselves, as in the recordings, and not by the ids under which a server keeps them.
          return AiSdk.layer(openai.responses(name), {
            call: { providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } } }
          })
        case "openai-chat":
          return OpenAiCompatible.layer({ model: name, baseUrl: baseURL, ...chat }).pipe(
            Layer.provide(FetchHttpClient.layer)
          )
      }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
