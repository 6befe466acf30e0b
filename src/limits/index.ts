/**
 * Limits: how often a tool is called, and when it rests.
 *
 * @since 0.1.0
 */
export * as Limits from "./Limits.ts"
