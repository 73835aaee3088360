/**
 * `assent/sql`: sessions kept in a SQLite database. Needs `@effect/sql`, and `@libsql/client` for a file.
 *
 * @since 0.1.0
 */
export * as LibsqlStore from "./LibsqlStore.js"
export * as Migrations from "./Migrations.js"
export * as SqlSessionStore from "./SqlSessionStore.js"
