import { expect, test } from "vitest";

const SOURCE = new URL("../../../static/src/", import.meta.url);
/** Catalogues are where texts belong; dev/ is never part of a production build. */
const ELSEWHERE = /^(texts|dev)\//;

/** Attributes and props whose literal value a person would read. */
const READ = "aria-\\w+text|aria-label|aria-description|title|placeholder|alt|label|text|hint|error|summary";

/** Ways in which a text gets to a person. Each gives the text itself as its first group. */
const WAYS: RegExp[] = [
  // Between tags: <p>Hello</p>, also over several lines.
  /<[a-zA-Z][^<>]*(?<!=)>\s*([^<>{}]*\p{L}[^<>{}]*?)\s*<\//gu,
  // Between an expression and a tag: {n} models</p>
  /\}\s*([^<>{}();=]*\p{L}{2,}[^<>{}();=]*?)\s*<\/[a-zA-Z]/gu,
  new RegExp(`\\s(?:${READ})=(?:\\{\\s*)?["'\`]([^"'\`]*\\p{L}[^"'\`]*)["'\`]`, "gu"),
  // Texts that are handed over: toasts.show("Saved"), message: "Not found"
  /(?:toasts\.show|offerUndo|alert|confirm|prompt)\(\s*["'`]([^"'`]*\p{L}[^"'`]*)["'`]/gu,
  /\b(?:message|title|label|hint|placeholder):\s*["'`]([^"'`]*\p{L}[^"'`]*)["'`]/gu,
  /\b(?:document\.title|textContent|innerText)\s*=\s*["'`]([^"'`]*\p{L}[^"'`]*)["'`]/gu,
];

/** Commands, which are the same in all languages, and the icon of the command `title`. */
const NOT_TEXT = /^(\/[a-z]+ ?|pencil)$/;

/** Gives the texts of a source file that stand outside the catalogues. */
function outsideTexts(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");
  // What a template only puts together from expressions says nothing itself.
  return WAYS.flatMap((way) => [...code.matchAll(way)].map(([, text]) => text!.replace(/\$\{[^}]*\}/g, "")))
    .filter((text) => /\p{L}/u.test(text) && !NOT_TEXT.test(text));
}

async function* sources(folder: URL, path = ""): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(path, folder))) {
    if (isDirectory) yield* sources(folder, `${path}${name}/`);
    else if (/\.tsx?$/.test(name)) yield path + name;
  }
}

test("all texts of the page are in the catalogues", async () => {
  const found: Record<string, string[]> = {};
  let count = 0;
  for await (const path of sources(SOURCE)) {
    if (ELSEWHERE.test(path)) continue;
    count++;
    const texts = outsideTexts(await Deno.readTextFile(new URL(path, SOURCE)));
    if (texts.length > 0) found[path] = texts;
  }
  expect(count).toBeGreaterThan(50);
  expect(found).toEqual({});
});

test.each([
  "<p>Hello there</p>",
  "<p class={a}>\n  Hello\n</p>",
  '<p class="a">{count} models</p>',
  '<button aria-label="Close" />',
  "<img alt={`A picture of ${name}`} />",
  '<input placeholder={"Write"} />',
  '<EmptyState title="Nothing" />',
  'store.toasts.show("Saved")',
  'throw new ApiError(0, { code: "x", message: "It broke" })',
  'document.title = "Parlor"',
])("the search for such texts finds %j", (source) => expect(outsideTexts(source)).not.toEqual([]));

test.each([
  "<p>{texts.loading}</p>",
  "const [a, b] = useState<Check>(() => x);",
  "function f<T>(x: T): Promise<T> { return g<T>(x); }",
  '<button aria-label={texts.close} class="icon" />',
  "<h1 title={`${a} · ${b}`} />",
  "items.map((item) => <Row key={item.id} item={item} />)",
])("the search leaves %j alone", (source) => expect(outsideTexts(source)).toEqual([]));
