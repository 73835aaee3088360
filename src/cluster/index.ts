/**
 * `assent/cluster`: one host made of many processes, over one PostgreSQL database. Needs `@effect/cluster`, `@effect/sql`,
 * `@effect/sql-pg` and `@effect/platform-node`.
 *
 * @since 0.1.0
 */
export * as ClusterNode from "./ClusterNode.js"
