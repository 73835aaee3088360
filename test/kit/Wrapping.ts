/** The ways in which a program may wrap a function of a service. */

type Func = (...args: ReadonlyArray<never>) => unknown

/**
 * The service with `own` in place of the function `key`, in every way that JavaScript has. None of them may be
 * bypassed.
 */
export const wrapped = <K extends string, F extends Func, S extends { readonly [P in K]: F }>(
  service: S,
  key: K,
  own: S[K]
): ReadonlyArray<readonly [way: string, service: S]> => {
  const given = service[key]
  const call = (args: ReadonlyArray<unknown>) => Reflect.apply(own, undefined, args)
  class Delegate {
    constructor(private readonly inner: S) {}
    get [key as string]() {
      return (...args: ReadonlyArray<unknown>) => call(args)
    }
    rest(name: string) {
      return Reflect.get(this.inner, name)
    }
  }
  const delegate = new Delegate(service)
  for (const name of Object.keys(service)) {
    if (name !== key) Object.defineProperty(delegate, name, { get: () => delegate.rest(name) })
  }
  const disguised = Object.setPrototypeOf(
    Object.assign((...args: ReadonlyArray<unknown>) => call(args), given, { displayName: given.name }),
    given
  )
  const proxied = new Proxy(given, { apply: (_, __, args) => call(args) })
  const all: ReadonlyArray<readonly [string, unknown]> = [
    ["a spread", { ...service, [key]: own }],
    ["Object.create", Object.create(service, { [key]: { value: own, enumerable: true } })],
    ["Object.assign", Object.assign(Object.create(Object.getPrototypeOf(service)), service, { [key]: own })],
    [
      "a proxy of the service",
      new Proxy(service, { get: (target, name) => (name === key ? own : Reflect.get(target, name)) })
    ],
    ["a proxy of the function", { ...service, [key]: proxied }],
    ["a class that delegates", delegate],
    ["a function that looks like the other", { ...service, [key]: disguised }],
    [
      "all descriptors",
      Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(service), [key]: { value: own } })
    ],
    ["a getter that makes a new one each time", Object.create(service, { [key]: { get: () => own.bind(undefined) } })]
  ]
  // Each has all members of the service, which the type system cannot see.
  return all as ReadonlyArray<readonly [string, S]>
}
