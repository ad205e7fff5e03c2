/** A store against the plain model of one. */
import type { Laws } from "../law.ts"
import { storeModel } from "../StoreModel.ts"

export const agreeing: Laws = {
  "any sequence of operations is answered, and leaves the rows, as the plain model says": storeModel()
}
