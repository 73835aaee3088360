/** Who settled which request, for at least the last 512: this tells a late answer from a wrong one. */
export class RecentSettlements {
  // Two generations: the older is forgotten when the younger is full. Created with the first settlement, because
  // thousands of these may have none yet.
  private young: Map<string, string> | undefined
  private old: Map<string, string> | undefined

  add(requestId: string, by: string): void {
    if (this.young === undefined || this.young.size >= 512) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(requestId, by)
  }

  settledBy(requestId: string): string | undefined {
    return this.young?.get(requestId) ?? this.old?.get(requestId)
  }

  /** Forgets a request that is open again. */
  forget(requestId: string): void {
    this.young?.delete(requestId)
    this.old?.delete(requestId)
  }
}
