// Whose turn is it? Processes that are compared measure a slice each in turn, so that whatever else slows the machine down
// for a while slows down all of them. Whoever was not started to take turns always has it.
import { type ChildProcess, fork } from "node:child_process"

/** Waits for the next turn; the one before ends. */
export const turn = (): Promise<void> =>
  new Promise((go) => {
    if (process.send === undefined) return go()
    process.once("message", () => go())
    process.send("over")
  })

/** What a process printed, or why there is nothing of it. */
export interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly isKilled: boolean
}

interface Options {
  readonly file: string
  readonly execArgv: ReadonlyArray<string>
  readonly env: NodeJS.ProcessEnv
  /** How many milliseconds of turns a process has. */
  readonly patience: number
}

/** Runs a process for each list of arguments, a turn of each after the other until all have ended. */
export const inTurns = async (
  processes: ReadonlyArray<ReadonlyArray<string>>,
  { env, execArgv, file, patience }: Options
): Promise<ReadonlyArray<Ran>> => {
  const started = processes.map((args) => {
    const child = fork(file, args, { execArgv: [...execArgv], env, stdio: ["ignore", "pipe", "pipe", "ipc"] })
    return { child, ran: ranOf(child), first: pause(child), left: patience, isOver: false, isKilled: false }
  })
  for (const each of started) each.isOver = await each.first === "ended"
  while (started.some(({ isOver }) => !isOver)) {
    for (const each of started) {
      if (each.isOver) continue
      const from = performance.now()
      const timer = setTimeout(() => {
        each.isKilled = true
        each.child.kill("SIGKILL")
      }, each.left)
      const next = pause(each.child)
      each.child.send("go")
      each.isOver = await next === "ended"
      clearTimeout(timer)
      each.left -= performance.now() - from
    }
  }
  return Promise.all(started.map(async ({ isKilled, ran }) => ({ ...await ran, isKilled })))
}

/** Until the turn of a process is over, or the process. */
const pause = (child: ChildProcess): Promise<"over" | "ended"> =>
  new Promise((done) => {
    const settle = (how: "over" | "ended") => () => {
      child.off("message", over)
      child.off("exit", ended)
      done(how)
    }
    const [over, ended] = [settle("over"), settle("ended")]
    child.once("message", over)
    child.once("exit", ended)
  })

const ranOf = (child: ChildProcess): Promise<Pick<Ran, "stdout" | "stderr">> =>
  new Promise((done) => {
    const said = { stdout: "", stderr: "" }
    child.stdout?.on("data", (chunk: Buffer) => said.stdout += chunk.toString())
    child.stderr?.on("data", (chunk: Buffer) => said.stderr += chunk.toString())
    child.once("close", () => done(said))
  })
