/**
 * `assent/postgres`: sessions kept in a PostgreSQL database. Needs `@effect/sql` and `@effect/sql-pg`.
 *
 * @since 0.1.0
 */
export * as PostgresStore from "./PostgresStore.js"
