/** Multipart forms with one file, in pieces as a network cuts them. */
import type { AppContext } from "../../../middleware/env.ts";
import { readStreamedUpload } from "../../../routes/http/form.ts";
import { joinBytes } from "../../../services/storage/atomic_file.ts";
import type { Random } from "../random.ts";
import { joined, mutateBytes, oddText } from "../mutations.ts";
import { claim, nextStretch, target, unlessRefusedLater } from "../target.ts";

interface FormInput {
  contentType: string;
  body: Uint8Array<ArrayBuffer>;
  /** Lengths of the pieces in which the body arrives, in turn. */
  pieces: number[];
  /** What the form's only file is; `undefined` if the form may be broken. */
  file?: Uint8Array;
}

const encoder = new TextEncoder();

/** Data that looks like the end of a part up to its last byte. */
function almostEnds(random: Random, boundary: string): Uint8Array<ArrayBuffer> {
  const end = `\r\n--${boundary}`;
  const part = () => end.slice(0, random.below(end.length));
  return encoder.encode(random.list(random.size(50), () => random.pick([part(), "x", "\r\n", "--", "\r"])).join(""));
}

function formOf(boundary: string, file: Uint8Array, before = "", after = ""): Uint8Array<ArrayBuffer> {
  const field = (name: string) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\ntext\r\n`;
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n`;
  return joined(encoder.encode(before + field("one") + head), file, encoder.encode(`\r\n--${boundary}--${after}`));
}

/** Reads the file of a form; `undefined` if it is refused. */
function readFile({ body, contentType }: FormInput, pieces: number[]): Promise<Uint8Array | undefined> {
  let at = 0;
  const stream = ReadableStream.from((async function* () {
    for (let n = 0; at < body.length; n++) {
      // Pieces of a network arrive in turns of the event loop.
      if (n % 1_000 === 999) await nextStretch();
      yield body.slice(at, at += Math.max(1, pieces[n % pieces.length]!));
    }
  })());
  const context = { req: { raw: { body: stream }, header: () => contentType } } as unknown as AppContext;
  return unlessRefusedLater(() => readStreamedUpload(context, async (file) => joinBytes(await Array.fromAsync(file))));
}

export const FORMS = target<FormInput>({
  name: "forms",
  generate(random) {
    const boundary = random.pick(["x", "----WebKitFormBoundaryA1", "-".repeat(69) + "a", "a'()+_,./:=?b"]);
    const bytes = random.pick([
      () => almostEnds(random, boundary),
      () => encoder.encode(oddText(random)),
      () => mutateBytes(random, new Uint8Array(random.size(100_000))),
    ])();
    // A file that has the delimiter inside is another form.
    const file = new TextDecoder("latin1").decode(bytes).includes(`\r\n--${boundary}`) ? encoder.encode("x") : bytes;
    const contentType = `multipart/form-data; boundary="${boundary}"`;
    const pieces = random.list(1 + random.below(5), () => 1 + random.size(random.pick([3, 100, 70_000])));
    const body = formOf(boundary, file, random.pick(["", "\r\n"]), random.pick(["", "\r\n", "  \r\nafter"]));
    if (random.chance(0.4)) return { contentType, body, pieces, file };
    return { contentType, body: mutateBytes(random, body), pieces };
  },
  async run(input) {
    const inPieces = await readFile(input, input.pieces);
    const whole = await readFile(input, [Math.max(1, input.body.length)]);
    claim(isSame(inPieces, whole), () => "A form in pieces is read differently from the whole form");
    if (input.file !== undefined) claim(isSame(whole, input.file), () => "A file isn't what was sent");
  },
  cases: {
    "a file of line breaks": () => ({
      contentType: "multipart/form-data; boundary=x",
      body: formOf("x", encoder.encode("\r\n".repeat(500_000))),
      pieces: [1_000],
    }),
    "100,000 parts": () => ({
      contentType: "multipart/form-data; boundary=x",
      body: encoder.encode('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'.repeat(100_000)),
      pieces: [65_536],
    }),
    "a header without end": () => ({
      contentType: "multipart/form-data; boundary=x",
      body: encoder.encode(`--x\r\n${"a: b\r\n".repeat(100_000)}`),
      pieces: [65_536],
    }),
  },
});

function isSame(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
