/**
 * Markers stay one HTML comment whatever the key, are found again in any text, and cannot be planted without the secret.
 */
import { assert, describe, it } from "@effect/vitest"
import { effectMarker, findMarker } from "chamvi-effect"
import { Schema } from "effect"
import { createHmac } from "node:crypto"

/**
 * What is left of a text when its comments are taken out, and the comments, by the comment states of the HTML standard:
 * `-->` and `--!>` end a comment, `<!-->` and `<!--->` are empty ones, and one without an end goes on to the end.
 */
const scan = (html: string): { readonly comments: ReadonlyArray<string>; readonly rest: string } => {
  const comments: Array<string> = []
  let rest = ""
  let at = 0
  while (at < html.length) {
    if (!html.startsWith("<!--", at)) {
      rest += html[at++]
      continue
    }
    at += 4
    const start = at
    if (html[at] === ">" || html.startsWith("->", at)) {
      comments.push("")
      at += html[at] === ">" ? 1 : 2
      continue
    }
    while (at < html.length && !html.startsWith("-->", at) && !html.startsWith("--!>", at)) at++
    comments.push(html.slice(start, at))
    at += html.startsWith("-->", at) ? 3 : 4
  }
  return { comments, rest }
}

const hostile: ReadonlyArray<string> = [
  "-->",
  "--",
  "---",
  "-",
  "a-",
  "a--",
  "--!>",
  "-!>",
  "!>",
  ">",
  "->",
  "<!--",
  "<!",
  "<script>alert(1)</script>",
  "a --> <b>visible</b> <!-- ",
  "a\nb",
  "a\r\n\r\nb",
  "\u2028",
  "\u0000",
  "\t",
  " ",
  "a b",
  "\u{1f600}",
  "\u{1f600}".repeat(2_500),
  "M\u00e4rz",
  "a".repeat(10_000),
  "-".repeat(10_000),
  "<!-- chamvi:effect=".repeat(500),
  "%",
  "%41",
  "%2D%2D",
  "%E0%A4%A",
  "%%",
  "a%20b",
  "a hmac=",
  `a hmac=${"0".repeat(64)}`,
  `hmac=${"0".repeat(64)}`,
  effectMarker("inner"),
  `${effectMarker("inner")}${effectMarker("inner", { secret: "s" })}`,
  "&lt;!--&gt;",
  "`",
  "\"'\\",
  "]]>",
  "--\u00ad>",
  "\uff0d\uff0d>"
]

const Text = Schema.Union([
  Schema.Literals(hostile.filter((text) => text.length < 200)),
  Schema.String,
  Schema.Literals([
    "<!-- chamvi:effect=",
    "<!-- chamvi:effect=a",
    "<!-- chamvi:effect=a hmac=",
    " -->",
    "<!-- chamvi",
    "k"
  ])
])
const Key = Schema.Union([Text, Schema.TemplateLiteral([Text, Text])]).check(
  Schema.makeFilter((key) => key !== "" && key.isWellFormed())
)

describe("EffectMarker", () => {
  it("an ordinary key is written as it is", () => {
    const keys = ["run-1:comment:7", "a", "!\"#$&'()*+,-./:;=?@[\\]^_`{|}~", "A-Z-0-9"]
    for (const key of keys) {
      assert.strictEqual(effectMarker(key), `<!-- chamvi:effect=${key} -->`)
      assert.deepStrictEqual(findMarker(`Done.\n\n${effectMarker(key)}`), [key])
    }
  })

  it("any key stays one comment and is found again", () => {
    for (const key of hostile) {
      for (const options of [{}, { secret: "s" }]) {
        const marker = effectMarker(key, options)
        const { comments, rest } = scan(`before${marker}after`)
        assert.strictEqual(rest, "beforeafter", key)
        assert.strictEqual(comments.length, 1, key)
        assert.match(marker, /^[ -~]+$/)
        assert.notInclude(comments[0]!, "--")
        assert.deepStrictEqual(findMarker(`before${marker}after`, options), [key])
      }
    }
  })

  it.prop("stays one comment and is found in any text", [Text, Key, Text], ([before, key, after]) => {
    const marker = effectMarker(key)
    assert.include(findMarker(before + marker + after), key)
    assert.deepStrictEqual(findMarker(marker), [key])
    assert.strictEqual(scan(`a${marker}b`).rest, "ab")
  }, { arbitrary: { runs: 500 } })

  it.prop("is found with its secret in any text", [Text, Key, Text], ([before, key, after]) => {
    assert.include(findMarker(before + effectMarker(key, { secret: "s" }) + after, { secret: "s" }), key)
  }, { arbitrary: { runs: 500 } })

  it("several are found in order, each once", () => {
    const text = ["b", "a", "b", "a --> c"].map((key) => effectMarker(key)).join("")
      + effectMarker("d", { secret: "s" })
    assert.deepStrictEqual(findMarker(text), ["b", "a", "a --> c", "d"])
    assert.deepStrictEqual(findMarker(""), [])
  })

  it("what only looks like a marker is ignored", () => {
    const fakes = [
      "<!-- chamvi:effect= -->",
      "<!-- chamvi:effect=a-->",
      "<!--chamvi:effect=a -->",
      "<!-- chamvi:effect=a b -->",
      "<!-- chamvi:effect=a\n-->",
      "<!-- chamvi:effects=a -->",
      "<!-- CHAMVI:EFFECT=a -->",
      "<!-- chamvi:effect=\u00e9 -->",
      "<!-- chamvi:effect=a<b -->",
      "<!-- chamvi:effect=a hmac=1 -->",
      "&lt;!-- chamvi:effect=a --&gt;",
      "chamvi:effect=a"
    ]
    for (const fake of fakes) assert.deepStrictEqual(findMarker(fake), [], fake)
  })

  it("invalid percent sequences are ignored, and do not hide a marker beside them", () => {
    for (const encoded of ["%", "%4", "%zz", "%E0%A4%A", "%ff", "a%", "%ed%a0%80", "%C0%80"]) {
      const fake = `<!-- chamvi:effect=${encoded} -->`
      assert.deepStrictEqual(findMarker(fake + effectMarker("k") + fake), ["k"])
    }
  })

  it("with a secret a planted marker is ignored", () => {
    const secret = "s3cret"
    const own = effectMarker("key", { secret })
    const mac = createHmac("sha256", secret).update("key").digest("hex")
    assert.strictEqual(own, `<!-- chamvi:effect=key hmac=${mac} -->`)
    assert.deepStrictEqual(findMarker(own, { secret }), ["key"])
    const planted = {
      unsigned: effectMarker("key"),
      "signed with another secret": effectMarker("key", { secret: "other" }),
      "copied to another key": own.replace("=key ", "=kez "),
      truncated: own.replace(/.( -->)$/, "$1"),
      lengthened: own.replace(/( -->)$/, "0$1"),
      "changed in one digit": own.replace(mac, mac.replace(/.$/, (digit) => digit === "0" ? "1" : "0")),
      "in capitals": own.replace(mac, mac.toUpperCase()),
      "without a value": own.replace(mac, ""),
      zeros: own.replace(mac, "0".repeat(64)),
      "a plain hash": own.replace(mac, createHmac("sha256", "").update("key").digest("hex"))
    }
    for (const [kind, text] of Object.entries(planted)) {
      assert.notStrictEqual(text, own)
      assert.deepStrictEqual(findMarker(text, { secret }), [], kind)
      assert.deepStrictEqual(findMarker(text + own + text, { secret }), ["key"], kind)
    }
  })

  it("without a secret signed markers are found too", () => {
    assert.deepStrictEqual(findMarker(effectMarker("key", { secret: "s" })), ["key"])
  })

  it("the signature is of the key, however it is written", () => {
    const secret = "s"
    const rewritten = effectMarker("key", { secret }).replace("=key", "=%6be%79")
    assert.deepStrictEqual(findMarker(rewritten, { secret }), ["key"])
  })

  it("an empty secret is refused, for everybody knows it", () => {
    assert.throws(() => effectMarker("key", { secret: "" }), /secret/)
    assert.throws(() => findMarker("text", { secret: "" }), /secret/)
  })
})
