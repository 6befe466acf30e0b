// What does toolfold cost on a model of effect/ai that has no direct entry?
import type * as Work from "../work.ts"
import { define } from "./oursAgent.ts"
import { model } from "./plainModel.ts"

export const contender: Work.Contender = {
  timesOut: [],
  define: (spec, seen) => define(spec, seen, model(spec, seen))
}
