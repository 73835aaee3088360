/** Shell lines of readers and of structures around them, often with a program `evil` that nobody allows, and often broken. */

const split = (text: string): ReadonlyArray<string> => text.split("¦")

const readers = split(
  "cat a¦ls¦echo¦grep x a¦head -1 a¦printf x¦test a¦[ a ]¦true¦find .¦git status¦git log¦wc a¦sort a¦env¦env A=1¦nice¦timeout 5¦command¦xargs¦time¦" +
    "nohup¦setsid¦sh -c¦bash -c¦cd sub¦expr 1¦seq 2¦sed -n 1p¦sed s/a/b/ a¦find . -exec¦jq .¦type¦tail -n1 a¦[[ -f a¦[[ a == b ]]¦command -v¦xargs -n1¦tr a b¦diff a b¦" +
    "uniq a¦awk 1 a¦awk '{print $1}' a¦awk 'BEGIN{¦read -r q¦IFS=, read q¦q=$(cat a)¦q=(a b)¦export q=1¦unset q¦set -e¦declare q¦mapfile -t q¦((q++))¦tar tf a¦gzip -dc a¦" +
    "node --version¦npm ls¦python3 --version¦sqlite3 a 'select 1'¦: ¦let q=1¦wait¦jobs¦shopt -s nullglob"
)
const tokens = split(
  'evil¦$(evil)¦`evil`¦; ¦\'¦"¦${x:-$(evil)}¦$((a[$(evil)]))¦{evil,}¦~¦!¦#¦\\¦<(evil)¦>(evil)¦2>&1¦&>/dev/null¦>/dev/null¦ & ¦ && ¦ || ¦ | ¦|&¦(¦)¦{ ¦; }¦$x¦${x}¦"$x"¦' +
    "$'evil'¦$\"evil\"¦*¦?¦[a]¦-exec¦{}¦+¦\\;¦< a¦<<<¦<<< evil¦=evil¦a=evil¦PATH=.¦PATH=. ¦IFS=x¦--¦-c¦a¦b¦./evil¦\\evil¦ev''il¦@¦${!x}¦${x@P}¦${x/a/$(evil)}¦$[evil]¦$((evil))¦((evil))¦" +
    "if ¦; then ¦; fi¦; else ¦; do ¦; done¦done¦esac¦ in ¦;;¦case a in a) ¦case a in (a) ¦for q in ¦for PATH in . ¦for q in a b; do ¦while read -r q; do ¦while evil¦until ¦function evil ¦time ¦coproc ¦!evil¦evil#¦" +
    "'evil'¦$'\\x65vil'¦\\n¦\n¦\t¦\u00a0¦\u2028¦\\\n¦<<E\n¦<<'E'\n¦<<-E\n¦E\n¦\nE\n¦ ¦-v 'a[$(evil)]'¦x=$(evil)¦-- evil¦-ok¦system(\"evil\")}'¦print | \"evil\"}'¦1e evil¦s/a/evil/e¦'ls; evil'¦'ls'¦'$1' _ evil¦]]¦ ]] ¦ || evil ]]¦ && evil ]]¦)) ¦a=(evil)¦a=($(evil))¦q() { evil; }¦ | sh¦ | bash -s¦-I{}¦$E¦$e¦evil ;¦: ${PATH:=.}¦$((PATH=1))¦export PATH=.¦read PATH"
)

/** Structures around lists, sometimes broken. */
export const line = (random: () => number): string => {
  const of = (from: ReadonlyArray<string>): string => from[Math.floor(random() * from.length)] ?? ""
  const simple = (): string => {
    let text = random() < 0.03 ? "evil" : of(readers)
    for (let n = Math.floor(random() * 2.4); n > 0; n--)
      text += (random() < 0.8 ? " " : "") + (random() < 0.7 ? of(["a", "b", '"$x"', "$x", "'evil'", "-n"]) : of(tokens))
    return text
  }
  const list = (depth: number): string => {
    let text = command(depth)
    while (random() < 0.3) text += of(["; ", " && ", " || ", " | ", "\n", " & "]) + command(depth)
    return text
  }
  const command = (depth: number): string => {
    if (depth > 2 || random() < 0.6) return simple()
    const inner = () => list(depth + 1)
    const structure = [
      () => `for q in a ${simple()}; do ${inner()}; done`,
      () => `for q in a b\ndo ${inner()}\ndone`,
      () => `while read -r q; do ${inner()}; done < a`,
      () => `if ${inner()}; then ${inner()}; fi`,
      () => `if ${inner()}; then ${inner()}; elif ${inner()}; then ${inner()}; else ${inner()}; fi`,
      () => `case ${of(["a", "$x", "$(ls)"])} in a|b) ${inner()};; *) ${inner()};; esac`,
      () => `case a in (a) ${inner()}\nesac`,
      () => `{ ${inner()}; }`,
      () => `( ${inner()} )`,
      () => `! ${simple()}`,
      () => `[[ -f a && ${of(["-d b", "a == b", "evil"])} ]]`,
      () => `q=$(${inner()})`,
      () => `cat "$(${inner()})"`,
      () => `cat <(${inner()})`,
      () => `cat <<E\n${of(["evil", "$(evil)", "`evil`", "$x", `$(${inner()})`])}\nE\n${simple()}`,
      () => `cat <<'E'\n${of(["evil", "$(evil)", "E evil", "\\"])}\nE\n${simple()}`,
      () => `ls | xargs ${simple()}`,
      () => `find . -exec ${simple()} {} ${of(["\\;", "+"])}`,
      () => `${of(["sh", "bash"])} -c '${inner().replaceAll("'", `'\\''`)}'`
    ]
    return of2(structure)()
  }
  const of2 = <A>(from: readonly [A, ...ReadonlyArray<A>] | ReadonlyArray<A>): A => {
    const found = from[Math.floor(random() * from.length)]
    if (found === undefined) throw new Error("nothing to choose from")
    return found
  }
  let text = list(0)
  for (let n = random() < 0.2 ? 1 + Math.floor(random() * 2) : 0; n > 0; n--) {
    const at = Math.floor(random() * (text.length + 1))
    text = text.slice(0, at) + of(tokens) + text.slice(at + (random() < 0.3 ? 1 : 0))
  }
  return text
}
