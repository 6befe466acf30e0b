/**
 * Stores of threads, and of pauses: in memory, over a key-value store (files, say), in SQLite and PostgreSQL. What only Node
 * has is at `toolfold/memory/NodeSqlite` alone, so that this runs anywhere.
 *
 * @since 0.1.0
 */
export * as InMemory from "./InMemory.ts"
export * as KeyValue from "./KeyValue.ts"
export * as KeyValuePauses from "./KeyValuePauses.ts"
export * as Sql from "./Sql.ts"
export * as SqlPauses from "./SqlPauses.ts"
