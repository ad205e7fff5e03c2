/** Whether two types are the same, without looking into them: services and models are deep. */
export type Same<A, B> = [A] extends [B] ? [B] extends [A] ? true : false : false
