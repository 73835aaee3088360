/** The paths of a session's children. Each is given once: events name a child by its path also after it was closed. */
export class AgentPaths {
  /** The given paths, with the highest number that was appended to each. */
  private readonly given = new Map<string, number>()

  /** `parent` is the path of the session itself. */
  constructor(private readonly parent: string) {}

  /** The path of the next child of this name: the second `main/helper` is `main/helper-2`. */
  next(name: string): string {
    const plain = `${this.parent}/${name}`
    const last = this.given.get(plain)
    if (last === undefined) return this.occupy(plain)
    // The next number, unless a child already has that name by itself.
    let number = last + 1
    while (this.given.has(`${plain}-${number}`)) number++
    this.given.set(plain, number)
    return this.occupy(`${plain}-${number}`)
  }

  /** Records a path that another process gave. */
  occupy(path: string): string {
    if (!this.given.has(path)) this.given.set(path, 1)
    return path
  }
}
