/**
 * May a call run unasked, and what does it touch? Two options of a tool, with what sets and what reads them; `Tool`
 * exports them.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as WireTool from "effect/ai/Tool"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Subject from "../Subject.ts"
import type { JsonSchema } from "./jsonSchema.ts"
import * as Legal from "./legal.ts"
import * as Options from "./options.ts"

/**
 * A parameter that names what a call touches. A text is one subject, a list of texts is one each (of the kind `command` it
 * is a program and its arguments), and a parameter that is left out names none.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubjectOf<In> {
  readonly kind: Subject.Kind
  readonly pathArg: unknown extends In ? string : keyof In & string
}

/**
 * What the calls of a tool touch: a function of the decoded input, or the parameters that name it.
 *
 * @category models
 * @since 0.1.0
 */
export type Subjects<In> = ((input: In) => ReadonlyArray<Subject.Subject>) | ReadonlyArray<SubjectOf<In>>

// What was declared for the input of one tool; here that is forgotten.
type AnySubjects = ((input: never) => ReadonlyArray<Subject.Subject>) | ReadonlyArray<SubjectOf<unknown>>

const Sensitive = Services.Reference<boolean>("toolfold/Tool/Sensitive", { defaultValue: () => false })
const Declared = Services.Reference<AnySubjects | undefined>("toolfold/Tool/Subjects", {
  defaultValue: () => undefined
})

/** @internal */
export const annotations = { sensitive: Sensitive, subjects: Declared }

/**
 * A call of this tool needs somebody's yes before it runs. It is the agent's gate that asks for it.
 *
 * @category options
 * @since 0.1.0
 */
export const sensitive: Options.Combinator<boolean> = Options.combinator(Sensitive)

/**
 * What the calls of this tool touch, for the policy: a function of the decoded input, or the parameters that name it. A
 * `pathArg` that is no parameter is refused where a registry is assembled. The paths, hosts and commands are those that
 * the handler is about to use: a policy judges what is declared, and cannot see what is done.
 *
 * **Example** (A copy reads one file and writes another)
 *
 * ```ts run
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Subject from "toolfold/Subject"
 * import * as Tool from "toolfold/Tool"
 *
 * const copy = Tool.make("copy", {
 *   input: { from: Schema.String, to: Schema.String },
 *   handler: ({ from, to }) => Effect.succeed(`copied ${from} to ${to}`)
 * })
 * const byInput = copy.pipe(Tool.subjects(({ from, to }) => [Subject.fileRead(from), Subject.fileWrite(to)]))
 * const byName = copy.pipe(
 *   Tool.subjects([{ kind: "file-read", pathArg: "from" }, { kind: "file-write", pathArg: "to" }])
 * )
 *
 * Tool.subjectsOf(byInput, { from: "a", to: "b" }).map(({ kind, value }) => `${kind} ${value}`) // => ["file-read a", "file-write b"]
 * Tool.subjectsOf(byName, { from: "a", to: "b" }).length // => 2
 * Tool.subjectsOf(copy, { from: "a", to: "b" }) // => []
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export const subjects: {
  <T extends WireTool.Any>(subjects: Subjects<WireTool.Parameters<T>>): (self: T) => T
  <T extends WireTool.Any>(self: T, subjects: Subjects<WireTool.Parameters<T>>): T
} = dual(2, (self: WireTool.Any, subjects: AnySubjects): WireTool.Any => self.annotate(Declared, subjects))

/**
 * Whether calls of a tool may need somebody's yes: it says so, or it is a tool of `effect/ai` with `needsApproval`, which
 * may depend on the call (`needsApproval` tells).
 *
 * @category queries
 * @since 0.1.0
 */
export const isSensitive = (self: WireTool.Any): boolean =>
  Services.get(self.annotations, Sensitive) || (self.needsApproval !== undefined && self.needsApproval !== false)

/**
 * Whether this call of a tool needs somebody's yes. `input` is decoded; `messages` is what was said before the call. What
 * a tool's own `needsApproval` dies of is a defect: a gate that asks for it does not let the call run.
 *
 * @category queries
 * @since 0.1.0
 */
export const needsApproval = <T extends WireTool.Any>(
  self: T,
  input: WireTool.Parameters<T>,
  context: { readonly toolCallId: string; readonly messages: ReadonlyArray<Prompt.Message> }
): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (Services.get(self.annotations, Sensitive) || typeof self.needsApproval !== "function") {
      return Effect.succeed(isSensitive(self))
    }
    const needed = self.needsApproval(input, context)
    return typeof needed === "boolean" ? Effect.succeed(needed) : needed
  })

const isSubjects = Schema.is(Schema.Array(Subject.Subject))

/**
 * What a call touches, where its tool says so; else nothing. Throws where the tool's own function throws or gives
 * something else than subjects, and where a parameter holds nothing that could be one.
 *
 * @category queries
 * @since 0.1.0
 */
export const subjectsOf = <T extends WireTool.Any>(
  self: T,
  input: WireTool.Parameters<T>
): ReadonlyArray<Subject.Subject> => {
  // `subjects` and `make` took it for this tool's input.
  const declared = Services.get(self.annotations, Declared) as Subjects<unknown> | undefined
  if (declared === undefined) return []
  const given: unknown = typeof declared === "function" ? declared(input) : declared.flatMap((one) => named(one, input))
  if (!isSubjects(given)) throw new Error(`subjects of tool ${JSON.stringify(self.name)} did not give subjects`)
  return given
}

const named = ({ kind, pathArg }: SubjectOf<unknown>, input: unknown): ReadonlyArray<Subject.Subject> => {
  const holder = Object(input)
  const value: unknown = Object.hasOwn(holder, pathArg) ? Reflect.get(holder, pathArg) : undefined
  if (value === undefined || value === null) return []
  const values: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const texts = values.filter((one) => typeof one === "string" || typeof one === "number" || one instanceof URL)
  if (texts.length < values.length) throw new Error(`${pathArg} is ${Legal.shown(value)}, which names no ${kind}`)
  return kind === "command" && Array.isArray(value)
    ? [Subject.command(texts.map(String))]
    : texts.map((one) => Subject.make(kind, String(one)))
}

/** What is wrong with these options of a tool, whose input is advertised as this schema. */
export const problemsOf = (self: WireTool.Any, advertised: JsonSchema): ReadonlyArray<string> => {
  const sensitive: unknown = Services.get(self.annotations, Sensitive)
  return [
    ...(typeof sensitive === "boolean" ? [] : [`sensitive must be true or false, got ${Legal.shown(sensitive)}`]),
    ...subjectProblems(Services.get(self.annotations, Declared), self, advertised)
  ]
}

const subjectProblems = (given: unknown, self: WireTool.Any, advertised: JsonSchema): ReadonlyArray<string> => {
  if (given === undefined || typeof given === "function") return []
  if (!Array.isArray(given) || given.length === 0) {
    return [`subjects must be a function, or a list of { kind, pathArg }, got ${Legal.shown(given)}`]
  }
  const fields = fieldsOf(self, advertised)
  return given.flatMap((one: unknown) =>
    !isSubjectOf(one)
      ? [`subjects must be a list of { kind, pathArg }, and holds ${Legal.shown(one)}`]
      : fields.includes(one.pathArg)
      ? []
      : [
        `subjects: pathArg ${Legal.shown(one.pathArg)} is no field of the input; there are: ${
          fields.join(", ") || "none"
        }`
      ]
  )
}

const isSubjectOf = Schema.is(Schema.Struct({ kind: Schema.NonEmptyString, pathArg: Schema.String }))

/** The fields of the decoded input; of one without fields of its own, those that are advertised. */
const fieldsOf = (self: WireTool.Any, advertised: JsonSchema): ReadonlyArray<string> => {
  const ast = AST.toType(self.parametersSchema.ast)
  const own = AST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
  return own.length > 0 ? own : Object.keys(Object(advertised.properties))
}
