/**
 * What does a call touch? Files that it reads or writes, hosts, commands, things outside, and whatever else a tool names.
 *
 * A tool declares it with the option `subjects`, a policy decides by it. Subjects are data, so that a pause can be stored
 * with what it was about.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * One thing that a call touches: of which kind, and which.
 *
 * @category models
 * @since 0.1.0
 */
export const Subject = Schema.Struct({ kind: Schema.String, value: Schema.String })

/**
 * @category models
 * @since 0.1.0
 */
export type Subject = typeof Subject.Type

/**
 * The kinds that are known here, and the application's own.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = "file-read" | "file-write" | "network" | "command" | "external" | (string & {})

/**
 * A subject of any kind.
 *
 * **Example** (A kind of the application)
 *
 * ```ts run
 * import * as Subject from "toolfold/Subject"
 *
 * Subject.make("calendar", "team") // => { kind: "calendar", value: "team" }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (kind: Kind, value: string): Subject => ({ kind, value })

/**
 * A file or folder that is read.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fileRead = (path: string): Subject => make("file-read", path)

/**
 * A file or folder that is made, changed, moved or removed.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fileWrite = (path: string): Subject => make("file-write", path)

/**
 * A server that is talked to: a URL, or a host with or without a port.
 *
 * @category constructors
 * @since 0.1.0
 */
export const network = (urlOrHost: string | URL): Subject => make("network", String(urlOrHost))

/**
 * A command that is run: a text for a shell, or the program and its arguments, which are kept as a text that a shell
 * would read as exactly them.
 *
 * **Example** (Arguments that a shell would read otherwise)
 *
 * ```ts run
 * import * as Subject from "toolfold/Subject"
 *
 * Subject.command(["rm", "my file;", "$HOME"]).value // => "rm 'my file;' '$HOME'"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const command = (command: string | ReadonlyArray<string>): Subject =>
  make("command", typeof command === "string" ? command : command.map(quoted).join(" "))

const quoted = (word: string): string =>
  /^[A-Za-z0-9_@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/**
 * Something outside the application that is none of the others: an account, a mailbox, a device.
 *
 * @category constructors
 * @since 0.1.0
 */
export const external = (name: string): Subject => make("external", name)
