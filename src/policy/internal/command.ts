/**
 * Which commands does a text make a shell run, and does a prefix mean one of them?
 *
 * A text is read as a POSIX shell reads it, as far as that can be told without running it. What runs something else first,
 * or writes to a file beside, is refused; a word that the shell fills in is open: it may be anything.
 */
import * as Result from "effect/Result"
import type { Match } from "./name.ts"

/** A word of a command. An open one may become something else. */
export interface Word {
  readonly text: string
  readonly isOpen: boolean
}

/** A command: the variables that it sets for itself, then the program and its arguments. */
export interface Command {
  readonly assigned: ReadonlyArray<Word>
  readonly words: ReadonlyArray<Word>
}

const reserved = new Set(
  "if then elif else fi for while until do done case esac in select function coproc { } ! [[ ]]".split(" ")
)

// They run what stands among their arguments.
const wrappers = new Set(
  ("sudo doas env command builtin exec nohup nice ionice time timeout xargs parallel stdbuf setsid setarch chroot " +
    "busybox toybox strace ltrace watch find unshare nsenter chrt taskset flock caffeinate").split(" ")
)

const shells = new Set("sh bash dash ash zsh ksh mksh fish rbash su script".split(" "))

const mostCharacters = 10_000
const mostLevels = 4

/** The commands that a text comes to, those of shells within it too; or why that cannot be told. */
export const parse = (text: string, level = 0): Result.Result<ReadonlyArray<Command>, string> => {
  if (text.length > mostCharacters) return Result.fail("it is too long")
  if (level > mostLevels) return Result.fail("it runs a shell in a shell too often")
  const read = split(text)
  if (Result.isFailure(read)) return read
  const commands = [...read.success]
  if (commands.length === 0) return Result.fail("it is empty")
  for (const command of read.success) {
    const [first] = command.words
    if (first !== undefined && reserved.has(first.text)) {
      return Result.fail(`it holds the shell's own word ${first.text}; give single commands`)
    }
    for (const inner of texts(command)) {
      if (inner === undefined) return Result.fail("what it has another shell run cannot be told")
      const within = parse(inner, level + 1)
      if (Result.isFailure(within)) return within
      commands.push(...within.success)
    }
  }
  return Result.succeed(commands)
}

/** The texts that a command has a shell run; nothing in the place of one that is not known. */
const texts = (command: Command): ReadonlyArray<string | undefined> =>
  starts(command).flatMap((at) => {
    const name = programOf(command.words[at])
    const args = command.words.slice(at + 1)
    if (name === "eval") return [args.some(({ isOpen }) => isOpen) ? undefined : args.map(({ text }) => text).join(" ")]
    if (!shells.has(name)) return []
    const flag = args.findIndex(({ isOpen, text }) => isOpen || /^-[a-z]*c/i.test(text))
    if (flag === -1) return []
    // What follows `-o` is the name of an option.
    const script = args.find(({ isOpen, text }, at) =>
      at > flag && (isOpen || (!/^[-+]/.test(text) && !/^[-+][a-z]*o$/i.test(args[at - 1]?.text ?? "")))
    )
    return [args[flag]?.isOpen || script?.isOpen ? undefined : script?.text]
  })

/** Where in a command a program may stand: in front, and after one that runs others anywhere. */
const starts = ({ words }: Command): ReadonlyArray<number> =>
  words.length === 0 ? [] : wrappers.has(programOf(words[0])) ? words.map((_, at) => at) : [0]

// `/bin/RM.exe` and `rm` may be one program.
const programOf = (word: Word | undefined): string =>
  (word?.text ?? "").slice((word?.text ?? "").lastIndexOf("/") + 1).toLowerCase().replace(/\.(?:exe|cmd|bat|com)$/, "")

const isAssignment = /^[A-Za-z_]\w*\+?=/

/** What may follow a `>` or `<` without touching a file. */
const harmless = /(?:>{1,2}[ \t]*\/dev\/null|<[ \t]*\/dev\/null|[<>]&(?:\d+|-))(?![^\s;&|])/y

const split = (text: string): Result.Result<ReadonlyArray<Command>, string> => {
  if (/(?![\t\n])\p{Cc}/u.test(text) || !text.isWellFormed()) return Result.fail("it holds a control character")
  const commands: Array<Command> = []
  let words: Array<Word> = []
  let assigned: Array<Word> = []
  // The word that is being read, and from where on it is more than what is written.
  let word: { text: string; isOpen: boolean; quotedFrom: number } | undefined
  const endWord = () => {
    if (word !== undefined) {
      const { isOpen, quotedFrom, text } = word
      const isFront = words.length === 0 && isAssignment.test(text) && text.indexOf("=") < quotedFrom
      // These are no wildcards where they stand alone, as in `[ -f x ]` and `find -exec ls {} +`.
      const isPlain = quotedFrom === Infinity && /^(?:[[\]{}]|\{\})$/.test(text)
      ;(isFront ? assigned : words).push({ text: text.normalize("NFC"), isOpen: isOpen && !isPlain })
    }
    word = undefined
  }
  const endCommand = () => {
    endWord()
    if (words.length + assigned.length > 0) commands.push({ assigned, words })
    words = []
    assigned = []
  }
  const add = (characters: string, isWritten = false, isOpen = false) => {
    word ??= { text: "", isOpen: false, quotedFrom: Infinity }
    if (!isWritten) word.quotedFrom = Math.min(word.quotedFrom, word.text.length)
    word.text += characters
    word.isOpen ||= isOpen
  }
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    const after = text.charAt(at + 1)
    harmless.lastIndex = at
    if (char === "`") return Result.fail("it holds a backtick; give single commands")
    if (char === "$") {
      const [name] = /^\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*|[\d@*#?$!-])/.exec(text.slice(at)) ?? []
      if (name === undefined && (/[({[]/.test(after) || (!isQuoted && /["']/.test(after)))) {
        return Result.fail(`it holds $${after}; give single commands without it`)
      }
      add(name ?? char, false, name !== undefined)
      at += (name ?? char).length - 1
    } else if (isQuoted) {
      if (char === '"') isQuoted = false
      else if (char === "\\" && /[$`"\\\n]/.test(after)) {
        if (after !== "\n") add(after)
        at++
      } else add(char)
    } else if (char === '"') {
      isQuoted = true
      add("")
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1)
      if (end === -1) return Result.fail("it holds a quote that is not closed")
      add(text.slice(at + 1, end))
      at = end
    } else if (char === "\\") {
      if (after === "") return Result.fail("it ends with a backslash")
      if (after !== "\n") add(after)
      at++
    } else if (/[<>]/.test(char) && harmless.test(text)) {
      if (word?.quotedFrom === Infinity && /^\d+$/.test(word.text)) word = undefined
      endWord()
      at = harmless.lastIndex - 1
    } else if (/[<>]/.test(char)) return Result.fail(`it holds ${char}, which goes to a file or a command beside it`)
    // Some shells take `&>` for one sign and others for two, after which another command begins.
    else if (char === "&" && after === ">") return Result.fail("it holds &>; write >/dev/null 2>&1")
    else if (/[()]/.test(char)) return Result.fail(`it holds ${char}; give single commands`)
    else if (/[;&|\n]/.test(char)) endCommand()
    else if (/[ \t]/.test(char)) endWord()
    else if (char === "#" && word === undefined) return Result.fail("it holds a comment; leave it out")
    else add(char, true, /[*?[\]{}]/.test(char) || (char === "~" && word === undefined))
  }
  if (isQuoted) return Result.fail("it holds a quote that is not closed")
  endCommand()
  return Result.succeed(commands)
}

/** What tells whether a prefix means a command, or what is wrong with the prefix. */
export const matcher = (
  given: string | ReadonlyArray<string>
): Result.Result<(command: Command) => Match, string> => {
  if (given === "*") return Result.succeed(() => "yes")
  const read = typeof given === "string" ? split(given) : Result.succeed(given.length === 0 ? [] : [argv(given)])
  if (Result.isFailure(read)) return Result.fail(`is no command: ${read.failure}`)
  const [prefix, ...others] = read.success
  if (others.length > 0) return Result.fail("is more than one command")
  if (prefix === undefined) return Result.fail("is empty")
  if (prefix.words.length === 0) return Result.fail("names no program")
  const all = [...prefix.assigned, ...prefix.words]
  if (all.some(({ isOpen }) => isOpen)) {
    return Result.fail("has a wildcard or a variable: what follows a prefix is free anyway")
  }
  if (all.some(({ text }) => text === "" || text.includes("\0"))) {
    return Result.fail("has a word that is empty or holds a null byte")
  }
  return Result.succeed((command) =>
    prefix.assigned.length === command.assigned.length && isPrefix(prefix.assigned, command.assigned) &&
      isPrefix(prefix.words, command.words)
      ? "yes"
      : starts(command).some((at) => mayFollow(prefix.words, command.words.slice(at)))
      ? "maybe"
      : "no"
  )
}

const argv = (given: ReadonlyArray<string>): Command => ({
  assigned: [],
  words: given.map((text) => ({ text: text.normalize("NFC"), isOpen: false }))
})

const isPrefix = (prefix: ReadonlyArray<Word>, words: ReadonlyArray<Word>): boolean =>
  prefix.every(({ text }, at) => words[at]?.text === text && !words[at]?.isOpen)

/** Whether a command may be one of a prefix: by another path of its program, with options in between, or by an open word. */
const mayFollow = (prefix: ReadonlyArray<Word>, words: ReadonlyArray<Word>): boolean => {
  const [first, ...others] = prefix
  const [program] = words
  if (first === undefined || program === undefined) return false
  if (program.isOpen) return true
  if (programOf(first) !== programOf(program)) return false
  let ends = new Set([1])
  for (const { text } of others) {
    const next = new Set<number>()
    for (const at of ends) {
      const word = words[at]
      if (word?.isOpen) return true
      if (word?.text === text) next.add(at + 1)
      // An option may have a value of its own. What is added to a set while it is walked is walked too.
      if (word?.text.startsWith("-")) ends.add(at + 1).add(at + 2)
    }
    ends = next
  }
  return ends.size > 0
}
