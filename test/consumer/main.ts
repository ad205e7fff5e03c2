// A program of somebody who installed the package: compiled and run against the packed build by
// `npm run check:consumer`, where "chamvi-effect" has no source to fall back to.
import * as chamvi from "chamvi-effect"

if (Object.keys(chamvi).length === 0) {
  throw new Error("the package's root exports nothing")
}
