/**
 * How is a function also a tool of `effect/ai`? By a prototype of its own, with the fields of a tool as properties.
 *
 * effect's `annotate` and its like copy a tool into a plain object, so these methods are our own and give a callable
 * tool back.
 */
import * as WireTool from "effect/ai/Tool"
import * as Services from "effect/Context"
import * as Effect from "effect/Effect"
import { type Pipeable, pipeArguments } from "effect/Pipeable"
import * as Schema from "effect/Schema"
import * as Arguments from "./arguments.ts"
import * as JsonSchema from "./jsonSchema.ts"

export const TypeId = "~toolfold/Tool"

/** Any tool of ours, its schemas and needs forgotten. */
export interface AnyTool extends WireTool.Any, Pipeable {
  readonly [TypeId]: Declaration
}

/** What a registry reads of a tool. */
export interface Declaration {
  readonly input: Schema.Constraint
  readonly output: Schema.Constraint
  readonly failure: Schema.Constraint
  // The handler's types stand in `Tool`; here they are forgotten, as in every table of tools.
  readonly handler: (input: unknown) => Effect.Effect<unknown, unknown, unknown>
  /** What is wrong with the declaration; a registry refuses the tool and lists it. */
  readonly problems: ReadonlyArray<string>
  /** What is advertised in the place of the input's own JSON Schema. */
  readonly advertised?: JsonSchema.JsonSchema | undefined
}

/** The own properties of a tool; `build` puts them on a function. */
export interface Shape {
  readonly [TypeId]: Declaration
  readonly annotations: Services.Context<never>
  readonly [key: string]: unknown
}

export const build = (shape: Shape): AnyTool => {
  const { handler, input } = shape[TypeId]
  const withDefaults = defaulting(input)
  const tool = (given: unknown = {}) =>
    Effect.suspend(() => withDefaults === undefined ? handler(given) : Effect.flatMap(withDefaults(given), handler))
  Object.setPrototypeOf(tool, Proto)
  for (const key of Reflect.ownKeys(shape)) {
    Object.defineProperty(tool, key, { value: Reflect.get(shape, key), enumerable: true, configurable: true })
  }
  return tool as unknown as AnyTool // a function with the properties of `Shape` and the methods of `Proto`
}

const rebuild = (self: AnyTool, changes: Record<string, unknown>): AnyTool => {
  const shape: Record<PropertyKey, unknown> = {}
  for (const key of Object.keys(self)) shape[key] = Reflect.get(self, key)
  return build({ ...shape, ...changes } as Shape) // the same properties, some of them replaced
}

/** The same tool, which advertises this JSON Schema as it stands and has these problems more. */
export const advertiseAs = <T extends AnyTool>(
  self: T,
  advertised: JsonSchema.JsonSchema,
  problems: ReadonlyArray<string>
): T => {
  const declaration = self[TypeId]
  return rebuild(self, {
    [TypeId]: { ...declaration, advertised, problems: [...declaration.problems, ...problems] }
  }) as T // the same tool, with the same types
}

/** The same tool under another name. */
export const rename = (self: WireTool.Any, name: string): WireTool.Any =>
  TypeId in self
    ? rebuild(self as AnyTool, { name, id: `effect/ai/Tool/${name}` })
    : Object.assign(Object.create(Object.getPrototypeOf(self)), self, { name })

// A user's types do not show the setters of schemas, which would leave the handler behind; `effect/ai` uses them to
// forget what it is not to judge.
const withSchema = (part: "input" | "output" | "failure", field: string) =>
  function(this: AnyTool, schema: Schema.Constraint) {
    return rebuild(this, { [TypeId]: { ...this[TypeId], [part]: schema }, [field]: schema })
  }

const Proto = Object.assign(Object.create(Function.prototype), {
  [WireTool.TypeId]: { _Requirements: (_: never) => _ },
  pipe() {
    return pipeArguments(this, arguments)
  },
  annotate(this: AnyTool, tag: Services.Key<unknown, unknown>, value: unknown) {
    return rebuild(this, { annotations: Services.add(this.annotations, tag, value) })
  },
  annotateMerge(this: AnyTool, context: Services.Context<never>) {
    return rebuild(this, { annotations: Services.merge(this.annotations, context) })
  },
  addDependency(this: AnyTool) {
    return rebuild(this, {})
  },
  setNeedsApproval(this: AnyTool, needsApproval: unknown) {
    return rebuild(this, { needsApproval })
  },
  setParameters: withSchema("input", "parametersSchema"),
  setSuccess: withSchema("output", "successSchema"),
  setFailure: withSchema("failure", "failureSchema")
})

/** What fills in the parameters that a plain call left out; nothing where no parameter has a default. */
const defaulting = (
  input: Schema.Constraint
): ((given: unknown) => Effect.Effect<unknown, never, unknown>) | undefined => {
  const fields = Object.entries(fieldsOf(input)).filter(([, field]) => JsonSchema.hasDefault(field.ast))
  if (fields.length === 0) return undefined
  return (given) => {
    const absent = fields.filter(([name]) =>
      !Object.hasOwn(given as object, name) || Reflect.get(given as object, name) === undefined
    )
    if (absent.length === 0) return Effect.succeed(given)
    const missing = Schema.Struct(Object.fromEntries(absent))
    return Effect.map(
      Effect.orDie(Schema.decodeUnknownEffect(missing)({})),
      (defaults) => ({ ...given as object, ...defaults })
    )
  }
}

const fieldsOf = (schema: Schema.Constraint): Schema.Struct.Fields =>
  "fields" in schema && Arguments.isObject(schema.fields) ? schema.fields as Schema.Struct.Fields : {}
