// What is the work on toolfold? Tools in a registry, and an agent on the model that it is given.
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AgentLoop from "../../src/AgentLoop.ts"
import * as Tool from "../../src/Tool.ts"
import * as ToolRegistry from "../../src/ToolRegistry.ts"
import * as EffectWork from "../effectWork.ts"
import * as Work from "../work.ts"

export const define = (
  spec: Work.Spec,
  seen: Work.Seen,
  model: Layer.Layer<LanguageModel.LanguageModel>,
  text: "streamed" | "observed" = "streamed"
): Promise<Work.Run> => {
  const timed = Work.isTimed(spec)
  const handler = EffectWork.perform(spec, seen, timed ? Tool.promise : Effect.promise)
  const tools = Work.toolNames(spec.tools).map((name) =>
    Tool.make(name, {
      description: Work.description,
      input: EffectWork.fields(),
      output: EffectWork.output,
      handler,
      timeout: timed ? 10 : undefined
    })
  )
  const agent = AgentLoop.make("bench", {
    maxTurns: Infinity,
    maxRepeats: Infinity,
    maxConsecutiveToolErrors: Infinity,
    concurrency: "unbounded"
  })

  const onText = (delta: string) => {
    if (delta !== Work.answer) seen.deltas++
  }
  const observed = Effect.map(AgentLoop.run(agent, { prompt: Work.question, onText }), ending)
  const streamed = Effect.suspend(() => {
    let result: AgentLoop.Result | undefined
    const take = (event: AgentLoop.Event) =>
      Effect.sync(() => {
        if (event._tag === "TextDelta") onText(event.delta)
        else if (event._tag === "Result") ({ result } = event)
      })
    return Effect.map(
      Stream.runForEach(AgentLoop.stream(agent, { prompt: Work.question }), take),
      () => result === undefined ? "" : ending(result)
    )
  })
  const whole = Effect.map(AgentLoop.run(agent, { prompt: Work.question }), (result) => {
    if (timed) seen.stillRunning += stillRunning(result)
    return ending(result)
  })

  const run = spec.deltas === 0 ? whole : text === "observed" ? observed : streamed
  return EffectWork.runner(run, ToolRegistry.layer(...tools), model)
}

const ending = (result: AgentLoop.Result): string => result._tag === "Completed" ? result.text : result._tag

const stillRunning = ({ turns }: AgentLoop.Result): number =>
  turns.flatMap(({ outcomes }) => outcomes).filter((outcome) => outcome._tag === "Failure" && outcome.stillRunning)
    .length
