/**
 * The filter of system calls that goes with the mounts and namespaces of {@link Bubblewrap}: a classic BPF program.
 *
 * Namespaces decide what a process sees. Parts of the kernel are in no namespace, and are refused here: key rings,
 * which a session shares with its login; sockets of families that reach the host in any network namespace (`AF_VSOCK`);
 * `io_uring`, which opens sockets without a system call that a filter sees; user namespaces and mounts, with which a
 * process could build another view; files that run as their owner (`chmod u+s`), which would work for others after the
 * call; and typing into a terminal.
 */

/** The program in the kernel's form: instructions of eight bytes in the byte order of the known machines. */
export const program = (): Uint8Array => {
  const instructions = [
    load(offsetOfArchitecture),
    ...architectures.flatMap(({ id, calls }) => section(id, calls)),
    // On a machine outside the table, only the namespaces confine.
    give(allowed)
  ]
  const bytes = new DataView(new ArrayBuffer(instructions.length * 8))
  for (const [index, { code, jf, jt, k }] of instructions.entries()) {
    bytes.setUint16(index * 8, code, true)
    bytes.setUint8(index * 8 + 2, jt)
    bytes.setUint8(index * 8 + 3, jf)
    bytes.setUint32(index * 8 + 4, k, true)
  }
  return new Uint8Array(bytes.buffer)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Instruction {
  readonly code: number
  readonly jt: number
  readonly jf: number
  readonly k: number
}

/** `struct seccomp_data { int nr; u32 arch; u64 instruction_pointer; u64 args[6]; }` */
const offsetOfCall = 0
const offsetOfArchitecture = 4
const offsetOfArgument = (index: number) => 16 + 8 * index

const allowed = 0x7fff0000
const refusal = (errno: number) => 0x00050000 | errno
const EPERM = refusal(1)
const ENOSYS = refusal(38)
const EAFNOSUPPORT = refusal(97)

const load = (k: number): Instruction => ({ code: 0x20, jt: 0, jf: 0, k })
const give = (k: number): Instruction => ({ code: 0x06, jt: 0, jf: 0, k })
/** Continues when equal, else skips. */
const whenEqual = (k: number, skip: number): Instruction => ({ code: 0x15, jt: 0, jf: skip, k })
const whenSet = (k: number, skip: number): Instruction => ({ code: 0x45, jt: 0, jf: skip, k })
/** Skips when the value is at least `k`. */
const skipFrom = (k: number, skip: number): Instruction => ({ code: 0x35, jt: skip, jf: 0, k })
const skipWhenEqual = (k: number, skip: number): Instruction => ({ code: 0x15, jt: skip, jf: 0, k })

/** Rules for one `call`, by its arguments; the rules behind it find the call's number loaded again. */
const call = (number: number, body: ReadonlyArray<Instruction>): ReadonlyArray<Instruction> => [
  whenEqual(number, body.length + 1),
  ...body,
  load(offsetOfCall)
]

const always = (number: number, refused: number) => [whenEqual(number, 1), give(refused)]

const withBits = (number: number, argument: number, bits: number) =>
  call(number, [load(offsetOfArgument(argument)), whenSet(bits, 1), give(EPERM)])

const withValue = (number: number, argument: number, values: ReadonlyArray<number>) =>
  call(number, [load(offsetOfArgument(argument)), ...values.flatMap((value) => [whenEqual(value, 1), give(EPERM)])])

/** Only these families: none of them leads out of a network namespace but `AF_UNIX`, which leads to files. */
const families = [0, 1, 2, 10, 16]
const socket = (number: number) =>
  call(number, [
    load(offsetOfArgument(0)),
    ...families.map((family, index) => skipWhenEqual(family, families.length - index)),
    give(EAFNOSUPPORT)
  ])

const newUser = 0x10000000
/** `O_CREAT` and `O_TMPFILE`: only then does opening take a mode. */
const create = 0o20000100
const setId = 0o4000
const typing = [0x5412, 0x541c]

const creating = (number: number, flags: number, mode: number) =>
  call(number, [
    load(offsetOfArgument(flags)),
    whenSet(create, 3),
    load(offsetOfArgument(mode)),
    whenSet(setId, 1),
    give(EPERM)
  ])

/** Calls with the same number everywhere. */
const common = [
  // io_uring
  ...[425, 426, 427].flatMap((number) => always(number, ENOSYS)),
  // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
  ...[428, 429, 430, 431, 432, 433, 442].flatMap((number) => always(number, EPERM)),
  // clone3 and openat2 hide their flags behind a pointer; programs fall back to the older calls.
  ...[435, 437].flatMap((number) => always(number, ENOSYS)),
  // fchmodat2
  ...withBits(452, 2, setId)
]

const architectures = [
  {
    id: 0xc000003e, // x86_64
    calls: [
      // From this number on, the same calls have another calling convention.
      skipFrom(0x40000000, 1),
      skipFrom(0, 1),
      give(ENOSYS),
      ...[248, 249, 250].flatMap((number) => always(number, ENOSYS)), // add_key, request_key, keyctl
      ...[155, 165, 166, 298, 304, 308, 321, 323].flatMap((number) => always(number, EPERM)),
      ...withBits(56, 0, newUser), // clone
      ...withBits(272, 0, newUser), // unshare
      ...socket(41),
      ...withValue(16, 1, typing), // ioctl
      ...withBits(90, 1, setId), // chmod
      ...withBits(91, 1, setId), // fchmod
      ...withBits(268, 2, setId), // fchmodat
      ...withBits(85, 1, setId), // creat
      ...withBits(133, 1, setId), // mknod
      ...withBits(259, 2, setId), // mknodat
      ...creating(2, 1, 2), // open
      ...creating(257, 2, 3), // openat
      ...common
    ]
  },
  {
    id: 0x40000003, // i386
    calls: [
      ...[286, 287, 288].flatMap((number) => always(number, ENOSYS)),
      ...[21, 22, 52, 102, 217, 336, 342, 346, 357, 374].flatMap((number) => always(number, EPERM)),
      ...withBits(120, 0, newUser),
      ...withBits(310, 0, newUser),
      ...socket(359),
      ...withValue(54, 1, typing),
      ...withBits(15, 1, setId),
      ...withBits(94, 1, setId),
      ...withBits(306, 2, setId),
      ...withBits(8, 1, setId),
      ...withBits(14, 1, setId),
      ...withBits(297, 2, setId),
      ...creating(5, 1, 2),
      ...creating(295, 2, 3),
      ...common
    ]
  },
  {
    id: 0xc00000b7, // aarch64
    calls: [
      ...[217, 218, 219].flatMap((number) => always(number, ENOSYS)),
      ...[39, 40, 41, 241, 265, 268, 280, 282].flatMap((number) => always(number, EPERM)),
      ...withBits(220, 0, newUser),
      ...withBits(97, 0, newUser),
      ...socket(198),
      ...withValue(29, 1, typing),
      ...withBits(52, 1, setId),
      ...withBits(53, 2, setId),
      ...withBits(33, 2, setId),
      ...creating(56, 2, 3),
      ...common
    ]
  },
  // 32-bit programs on aarch64 would bypass the table above.
  { id: 0x40000028, calls: [give(ENOSYS)] }
] as const satisfies ReadonlyArray<{ readonly id: number; readonly calls: ReadonlyArray<Instruction> }>

/** The rules of one architecture. A section may be longer than a conditional jump reaches, hence the plain jump. */
const section = (id: number, calls: ReadonlyArray<Instruction>): ReadonlyArray<Instruction> => [
  skipWhenEqual(id, 1),
  { code: 0x05, jt: 0, jf: 0, k: calls.length + 2 },
  load(offsetOfCall),
  ...calls,
  give(allowed)
]
