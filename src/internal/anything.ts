/**
 * What may stand where a schema says nothing? Anything, and not only what is JSON already.
 */
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"

const schemas = new WeakMap<Schema.Constraint, Schema.Constraint>()
const asts = new WeakMap<AST.AST, AST.AST>()

/**
 * The same schema, where what it says nothing of may be anything: for effect that is JSON already, and a date there an
 * error. What it encodes is JSON only after `Results.toJson`.
 */
export const open = (schema: Schema.Constraint): Schema.Constraint => {
  const known = schemas.get(schema)
  if (known !== undefined) return known
  const ast = openAst(schema.ast)
  const made = ast === schema.ast ? schema : Schema.make<Schema.Constraint>(ast)
  schemas.set(schema, made)
  return made
}

const openAst = (ast: AST.AST): AST.AST => {
  const known = asts.get(ast)
  if (known !== undefined) return known
  const made = isAnything(ast) ? new AST.Any(ast.annotations, ast.checks, undefined, ast.context) : openParts(ast)
  asts.set(ast, made)
  return made
}

const isAnything = (ast: AST.AST): boolean => AST.isUnknown(ast) && (ast.encoding ?? []).every(({ to }) => isJson(to))

const isJson = (ast: AST.AST): boolean => AST.isDeclaration(ast) && ast.run === json

const json = AST.isDeclaration(Schema.Json.ast) ? Schema.Json.ast.run : undefined

const openParts = (ast: AST.AST): AST.AST => {
  const whole = changed(ast, { encoding: each(ast.encoding, (link) => changed(link, { to: openAst(link.to) })) })
  const typed = <A extends { readonly type: AST.AST }>(member: A) => changed(member, { type: openAst(member.type) })
  return AST.isObjects(ast)
    ? changed(whole, {
      propertySignatures: each(ast.propertySignatures, typed),
      indexSignatures: each(ast.indexSignatures, typed)
    })
    : AST.isArrays(ast)
    ? changed(whole, { elements: each(ast.elements, openAst), rest: each(ast.rest, openAst) })
    : AST.isUnion(ast)
    ? changed(whole, { types: each(ast.types, openAst) })
    : AST.isSuspend(ast)
    ? changed(whole, { thunk: () => openAst(ast.thunk()) })
    : whole
}

const each = <A>(list: ReadonlyArray<A> | undefined, f: (member: A) => A): ReadonlyArray<A> | undefined => {
  const made = list?.map(f)
  return made?.every((member, at) => member === list?.[at]) === true ? list : made
}

// As effect copies its own nodes.
const changed = <A extends object>(node: A, changes: Record<string, unknown>): A =>
  Object.entries(changes).every(([key, value]) => Reflect.get(node, key) === value)
    ? node
    : Object.assign(Object.create(Object.getPrototypeOf(node)), node, changes)
