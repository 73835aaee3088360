/** Loads a package that is installed here, beside this file, and nowhere else. */
export const load = (name) => import(name)
