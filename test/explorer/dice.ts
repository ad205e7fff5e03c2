/** Mulberry32: the same numbers for the same seed, everywhere. */
export const makeDice = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6D2B79F5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
