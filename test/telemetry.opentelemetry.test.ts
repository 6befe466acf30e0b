import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import { assert, describe, it } from "@effect/vitest"
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  PeriodicExportingMetricReader
} from "@opentelemetry/sdk-metrics"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as AgentLoop from "toolfold/AgentLoop"
import * as Telemetry from "toolfold/telemetry/Telemetry"
import * as ScriptedModel from "toolfold/testing/ScriptedModel"
import * as Tool from "toolfold/Tool"
import * as ToolRegistry from "toolfold/ToolRegistry"
import * as Names from "../src/telemetry/internal/names.ts"
import { quiet } from "./utils.ts"

describe("the SDK of OpenTelemetry", () => {
  it.live("gets the spans of a run with their parents, kinds, errors and attributes", () =>
    Effect.gen(function*() {
      const exporter = new InMemorySpanExporter()
      const sdk = NodeSdk.layer(() => ({
        resource: { serviceName: "test" },
        spanProcessor: new SimpleSpanProcessor(exporter)
      }))
      const broken = Tool.make("broken", { handler: () => Effect.die(new Error("p4ss")) })
      yield* Effect.gen(function*() {
        yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" })
        const spans = exporter.getFinishedSpans()
        const nameOf = (id: string | undefined) => spans.find((span) => span.spanContext().spanId === id)?.name ?? "-"
        assert.deepStrictEqual(
          spans.map(({ events, kind, name, parentSpanContext, status }) => [
            nameOf(parentSpanContext?.spanId),
            name,
            kind,
            status.code,
            status.message,
            events.map((event) => [event.attributes?.["exception.type"], event.attributes?.["exception.message"]])
          ]),
          [
            ["invoke_agent bot", "chat", 2, 1, undefined, []],
            ["invoke_agent bot", "execute_tool broken", 0, 2, "defect", [["defect", "defect"]]],
            ["invoke_agent bot", "chat", 2, 1, undefined, []],
            ["-", "invoke_agent bot", 0, 1, undefined, []]
          ]
        )
        assert.deepStrictEqual(spans[0]?.attributes["gen_ai.response.finish_reasons"], ["tool_call"])
        assert.isFalse(
          JSON.stringify(spans.map(({ attributes, events, status }) => [attributes, events, status])).includes("p4ss")
        )
      }).pipe(
        Effect.provide(Layer.mergeAll(
          ToolRegistry.layer(broken),
          ScriptedModel.layer([ScriptedModel.call("broken")], "Sorry"),
          Telemetry.layer(),
          quiet
        )),
        Effect.provide(sdk)
      )
    }))

  it.live("gets the counts of requests, with the units and boundaries of the conventions", () =>
    Effect.gen(function*() {
      const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
      const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
      yield* Effect.gen(function*() {
        yield* AgentLoop.run(AgentLoop.make("bot"), { prompt: "go" })
        yield* Effect.promise(() => reader.forceFlush())
        const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap(({ metrics }) => metrics)
        )
        const found = metrics.filter(({ descriptor }) => descriptor.name.startsWith("gen_ai.")).map((metric) => [
          metric.descriptor.name,
          metric.descriptor.unit,
          metric.dataPoints.map(({ value }) =>
            typeof value === "object" && "buckets" in value ? value.buckets.boundaries : undefined
          )
        ])
        const { duration, tokens } = Names.metric
        assert.deepStrictEqual(found, [
          [duration.name, duration.unit, [[...duration.boundaries]]],
          [tokens.name, tokens.unit, [[...tokens.boundaries], [...tokens.boundaries]]]
        ])
      }).pipe(
        Effect.provide(Layer.mergeAll(
          ToolRegistry.layer(),
          ScriptedModel.layer({ says: ["Hi"], usage: { input: 3, output: 2 } }),
          Telemetry.layer({ metrics: "always" })
        )),
        Effect.provide(NodeSdk.layer(() => ({ resource: { serviceName: "test" }, metricReader: reader }))),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
    }))
})
