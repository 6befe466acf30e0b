/**
 * Which server does a URL or a host mean, and does a pattern mean it too? In the one form that the URL standard gives it:
 * lower case, punycode, addresses as numbers.
 */
import * as Result from "effect/Result"
import type { Match } from "./name.ts"

/** A server: its name or address, and its port where that is known. */
export interface Host {
  readonly name: string
  readonly port: number | undefined
  readonly address: Address | undefined
}

interface Address {
  readonly bits: 32 | 128
  readonly value: bigint
}

const ports: { readonly [scheme: string]: number } = { http: 80, https: 443, ws: 80, wss: 443, ftp: 21 }

/** The server that a text means, or why it means none. */
export const normalise = (given: string): Result.Result<Host, string> => {
  if (given === "") return Result.fail("it is empty")
  if (given.length > 4096) return Result.fail("it is too long")
  // A URL parser drops some of these or reads them as slashes, and no two do it alike.
  if (/[\p{Cc}\s\\]/u.test(given)) return Result.fail("it holds a space, a control character or a backslash")
  const scheme = /^([a-z][a-z\d+.-]*):\/\//i.exec(given)?.[1]?.toLowerCase()
  if (scheme === undefined && /^(?:https?|wss?|ftp|file):/i.test(given)) return Result.fail("its scheme lacks the //")
  const bare = scheme === undefined ? given.replace(/^\/\//, "") : given
  if (bare.startsWith("/")) return Result.fail("it names no host")
  const isAddress6 = /^[\da-f.]*:[\da-f.]*:[\da-f:.]*$/i.test(bare)
  if (scheme !== undefined && Object.hasOwn(ports, scheme)) return hostOf(given, ports[scheme])
  if (scheme === undefined) return hostOf(`http://${isAddress6 ? `[${bare}]` : bare}`, undefined)
  // What is no scheme of the standard keeps its host as it is written: it is read once more as one that is.
  const host = URL.canParse(given) ? new URL(given).host : ""
  return host === "" ? Result.fail("it names no host") : hostOf(`http://${host}`, undefined)
}

const hostOf = (url: string, usual: number | undefined): Result.Result<Host, string> => {
  if (!URL.canParse(url)) return Result.fail("it is no URL and no host")
  const { hostname, port } = new URL(url)
  // The port that a scheme leaves out is no port of another one.
  const said = port || (usual === undefined ? new URL(url.replace(/^http:/, "https:")).port : "")
  const name = mapped(hostname.replace(/\.$/, ""))
  return /^(?:|\..*|.*\.)$/.test(name)
    ? Result.fail("it names no host")
    : Result.succeed({ name, port: said === "" ? usual : Number(said), address: addressOf(name) })
}

// An IPv4 address may be written as one of IPv6, and reaches the same server.
const mapped = (name: string): string => {
  const [, high = "", low = ""] = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(name) ?? []
  const value = (parseInt(high, 16) << 16) + parseInt(low, 16)
  return high === "" ? name : [24, 16, 8, 0].map((shift) => (value >> shift) & 255).join(".")
}

const addressOf = (name: string): Address | undefined => {
  if (/^\d+(?:\.\d+){3}$/.test(name)) {
    return { bits: 32, value: name.split(".").reduce((value, part) => value << 8n | BigInt(part), 0n) }
  }
  if (!name.startsWith("[")) return undefined
  const [left = [], right] = name.slice(1, -1).split("::").map((half) => half === "" ? [] : half.split(":"))
  const zeros = right === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => "0")
  const groups = [...left, ...zeros, ...right ?? []]
  return { bits: 128, value: groups.reduce((value, group) => value << 16n | BigInt(`0x${group}`), 0n) }
}

/** What tells whether a pattern means a server, or what is wrong with the pattern. */
export const matcher = (pattern: string): Result.Result<(host: Host) => Match, string> => {
  if (pattern === "") return Result.fail("is empty")
  if (/[/@?#]/.test(pattern) && !/^[\da-f.:[\]]+\/\d+$/i.test(pattern)) {
    return Result.fail("is no host: a host stands alone")
  }
  const [whole, port] = /^\*:(\d+)$/.exec(pattern) ?? [pattern === "*" ? pattern : undefined, undefined]
  if (whole !== undefined) return ported(() => true, port)
  const [, network, length = ""] = /^(.+)\/(\d+)$/.exec(pattern) ?? []
  if (network !== undefined) return subnet(network, Number(length))
  const parent = pattern.startsWith("*.") ? pattern.slice(2) : undefined
  const host = normalise(parent ?? pattern)
  if (pattern.slice(1).includes("*") || Result.isFailure(host)) return Result.fail("is no host, no *.host and no *")
  const { address, name } = host.success
  if (parent !== undefined && address !== undefined) return Result.fail("is an address, which has nothing below it")
  return ported(
    parent === undefined ? (other) => other.name === name : (other) => other.name.endsWith(`.${name}`),
    host.success.port === undefined ? undefined : String(host.success.port)
  )
}

const ported = (
  isHost: (host: Host) => boolean,
  port: string | undefined
): Result.Result<(host: Host) => Match, string> =>
  Result.succeed((host) =>
    !isHost(host)
      ? "no"
      : port === undefined || host.port === Number(port)
      ? "yes"
      : host.port === undefined
      ? "maybe"
      : "no"
  )

const subnet = (network: string, length: number): Result.Result<(host: Host) => Match, string> => {
  const host = normalise(network)
  const address = Result.isSuccess(host) ? host.success.address : undefined
  if (address === undefined || length > address.bits) return Result.fail("is no range of addresses")
  const shift = BigInt(address.bits - length)
  return Result.succeed(({ address: other }) =>
    other?.bits === address.bits && other.value >> shift === address.value >> shift ? "yes" : "no"
  )
}
