/**
 * Policies: which calls may run, by what they touch.
 *
 * @since 0.1.0
 */
export * as Policy from "./Policy.ts"
