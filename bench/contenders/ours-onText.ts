// What does a delta cost where an observer of a run takes the text, instead of whoever reads a stream?
import type * as Work from "../work.ts"
import { model } from "./ours.ts"
import { define } from "./oursAgent.ts"

export const contender: Work.Contender = {
  timesOut: [],
  define: (spec, seen) => define(spec, seen, model(spec, seen), "observed")
}
