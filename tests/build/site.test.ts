/** The pages of the site before VitePress renders them, which tests/real/site.test.ts does. */
import { posix, resolve } from "node:path";
import { expect, test } from "vitest";
import { assembleSite } from "../../build/site/assemble.ts";
import { type OpenApiDocument, renderReference } from "../../build/site/reference.ts";
import { filesBelow, tempFolder } from "../helpers/files/storage_folder.ts";

const ROOT = resolve(import.meta.dirname!, "../..");
const LAMP = { $ref: "#/components/schemas/Lamp" };
const DOCUMENT: OpenApiDocument = {
  info: { version: "1.2.3" },
  paths: {
    "/api/lamps/{id}": {
      get: {
        tags: ["lamps"],
        summary: "A lamp",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string", maxLength: 64 } }],
        responses: {
          200: { description: "The lamp", content: { "application/json": { schema: LAMP } } },
          404: { description: "Error" },
        },
      },
    },
    "/api/piers": {
      post: {
        tags: ["piers"],
        summary: "Create a pier",
        requestBody: {
          content: {
            "application/json": {
              schema: {
                type: "object",
                required: ["name"],
                properties: {
                  name: { type: "string", description: "A | in <b>bold</b>" },
                  lights: { type: "array", items: { type: "object", properties: { lamp: LAMP } } },
                  owner: { $ref: "#/components/schemas/Owner" },
                },
              },
            },
          },
        },
        responses: { 204: { description: "Done" } },
      },
    },
  },
  components: {
    schemas: {
      Lamp: { type: "object", properties: { state: { enum: ["on", "off"], default: "off" } } },
      Owner: { type: "string" },
    },
  },
};

test("every link of the assembled pages leads to one of them or to a file that it has", async () => {
  await using folder = await tempFolder();
  const pages = await assembleSite(ROOT, folder.path, DOCUMENT, { base: "/", version: "1.2.3" });
  const files = new Set((await filesBelow(folder.path)).map((path) => path.slice(folder.path.length + 1)));
  const broken: string[] = [];
  let count = 0;
  for (const page of pages) {
    const text = (await Deno.readTextFile(folder.file(page))).replace(/^ *```.*?^ *```$/gms, "");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:|^#/.test(target)) continue;
      count++;
      const path = target.replace(/#.*/, "");
      const file = path.startsWith("/") ? `public${path}` : posix.join(posix.dirname(page), path);
      if (!files.has(file)) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(150);
  expect(pages).toEqual(expect.arrayContaining(["index.md", "changelog.md", "guide/index.md", "reference/lamps.md"]));
});

test("the sidebar has every page except those that other pages list", async () => {
  await using folder = await tempFolder();
  const pages = await assembleSite(ROOT, folder.path, DOCUMENT, { base: "/", version: "1.2.3" });
  const site = await Deno.readTextFile(folder.file(".vitepress/site.json"));
  const linked = new Set([...site.matchAll(/"link": "([^"]+)"/g)].map(([, link]) => link));
  const paths = pages.map((page) => `/${page.replace(/(index)?\.md$/, "")}`);
  expect(paths.filter((path) => !linked.has(path))).toEqual(["/"]);
  expect(site).not.toContain('"text": ""');
});

test("links to source files lead to the repository, or are text if there is none", async () => {
  await using folder = await tempFolder();
  const options = { base: "/", version: "1.2.3", repositoryUrl: "https://git.example/parlor" };
  await assembleSite(ROOT, folder.path, DOCUMENT, options);
  const license = "https://git.example/parlor/blob/main/";
  expect(await Deno.readTextFile(folder.file("security-cases.md"))).toContain(`](${license}tests/`);
  await using other = await tempFolder();
  await assembleSite(ROOT, other.path, DOCUMENT, { base: "/", version: "1.2.3" });
  expect(await Deno.readTextFile(other.file("security-cases.md"))).not.toContain("](../tests/");
});

test("the reference has a page for each tag, with fields, limits and links to schemas", () => {
  const pages = new Map(renderReference(DOCUMENT).map(({ path, text }) => [path, text]));
  expect([...pages.keys()]).toEqual([
    "reference/index.md",
    "reference/lamps.md",
    "reference/piers.md",
    "reference/schemas.md",
  ]);
  expect(pages.get("reference/index.md")).toContain("- `GET /api/lamps/{id}`: A lamp");
  const lamps = pages.get("reference/lamps.md")!;
  expect(lamps).toContain("## A lamp\n\n`GET /api/lamps/{id}`");
  expect(lamps).toContain("| `id` | path | string | required, at most 64 characters |");
  expect(lamps).toContain("**Response 200: The lamp** (`application/json`): [Lamp](./schemas.md#lamp)");
  expect(lamps).toContain("Errors: 404.");
  const piers = pages.get("reference/piers.md")!;
  expect(piers).toContain("| `name` | string | A \\| in \\<b>bold\\</b>; required |");
  expect(piers).toContain("| `lights[].lamp` | [Lamp](./schemas.md#lamp) |");
  expect(piers).toContain("[Owner](#owner)");
  expect(piers).toContain("### Owner\n\nstring");
  expect(pages.get("reference/schemas.md")).toContain('| `state` | `"on"` or `"off"` | default `"off"` |');
});
