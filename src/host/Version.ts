/** The version in `package.json`. A test compares them: a program that bundles the library has no such file. */
export const version = "0.1.0"
