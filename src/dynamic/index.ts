/**
 * Tools that are known at run time only.
 *
 * @since 0.1.0
 */
export * as DynamicTool from "./DynamicTool.ts"
