/**
 * Telemetry: spans, counts and logs by the OpenTelemetry conventions for generative AI.
 *
 * @since 0.1.0
 */
export * as Telemetry from "./Telemetry.ts"
