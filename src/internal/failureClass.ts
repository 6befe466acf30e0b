/**
 * Who can put a failure right? What a failure's schema says of it, else what is known of failures of models.
 */
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Parser from "effect/SchemaParser"

/** See `Turn.FailureClass`. */
export type FailureClass = "semantic" | "transient" | "environment" | "policy"

const key = "toolfold/failureClass"

/** The schema of a failure with its class: one for all of them, or what a function says of each. */
export const annotate = <S extends Schema.Top>(
  schema: S,
  failureClass: FailureClass | ((failure: S["Type"]) => FailureClass)
): S["Rebuild"] => schema.annotate({ [key]: failureClass })

/** The class of a failure; `semantic` where nothing says another. */
export const of = (schema: Schema.Constraint, failure: unknown): FailureClass =>
  declared(schema.ast, failure) ?? (isAiError(failure) ? ofModel(failure.reason._tag) : "semantic")

// A failure that is not of the schema is not the schema's to judge.
const declared = (ast: AST.AST, failure: unknown): FailureClass | undefined => {
  if (AST.isSuspend(ast)) return declared(ast.thunk(), failure)
  const own = said(ast)
  if (own !== undefined) {
    const given = typeof own !== "function" ? own : isOf(ast, failure) ? own(failure) : undefined
    return classes.find((known) => known === given)
  }
  if (!AST.isUnion(ast)) return undefined
  const member = ast.types.find((type) => isOf(type, failure))
  return member === undefined ? undefined : declared(member, failure)
}

const classes: ReadonlyArray<FailureClass> = ["semantic", "transient", "environment", "policy"]

/** What was annotated, before or after checks were put on. */
const said = (ast: AST.AST): unknown =>
  (ast.checks ?? []).toReversed().map(({ annotations }) => annotations?.[key]).find((own) => own !== undefined) ??
    ast.annotations?.[key]

const isOf = (ast: AST.AST, failure: unknown): boolean =>
  Parser.is(Schema.make<Schema.Codec<unknown>>(AST.toType(ast)))(failure)

interface AiError {
  readonly _tag: "AiError"
  readonly reason: { readonly _tag: string }
}

const isAiError = (u: unknown): u is AiError =>
  typeof u === "object" && u !== null && "_tag" in u && u._tag === "AiError" && "reason" in u &&
  typeof u.reason === "object" && u.reason !== null && "_tag" in u.reason

const ofModel = (reason: string): FailureClass =>
  /^(Authentication|QuotaExhausted)/.test(reason)
    ? "environment"
    : /^(RateLimit|InternalProvider|Network)/.test(reason)
    ? "transient"
    : "semantic"
