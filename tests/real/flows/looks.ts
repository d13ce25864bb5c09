/** What each engine once drew differently. */
import { expect } from "vitest";
import { picture } from "../../helpers/files/pictures.ts";
import { type Flow, store } from "./flow.ts";

/** The portraits of the gallery stand in their frames. */
export const placesPortraits: Flow = async ({ app, tab }) => {
  await app.put("/api/characters/mara", { card: { name: "Mara", description: "Keeper of the lighthouse" } });
  const stored = await app.put("/api/characters/mara/avatar", picture(0, 40), {
    headers: { "Content-Type": "image/png" },
  });
  expect(stored.ok, await stored.clone().text()).toBe(true);
  await tab.goto(`${app.url}/characters`);
  const apart = await tab.until((found) => found !== null, () => {
    const img = document.querySelector<HTMLImageElement>(".tile .portrait img");
    if (!img?.complete || img.naturalWidth === 0) return null;
    const [inner, outer] = [img.getBoundingClientRect(), img.parentElement!.getBoundingClientRect()];
    return [inner.top - outer.top, outer.bottom - inner.bottom];
  });
  expect(apart!.map(Math.round)).toEqual([0, 0]);
};

/** The names of actors stand in the middle of their boxes, as the drawn picture has them. */
export const centersActors: Flow = async ({ app, tab }) => {
  await store(app, "actors", ["Draw", "```mermaid\nsequenceDiagram\n  Ann->>Bob: Hello\n```"]);
  await tab.goto(`${app.url}/c/actors`);
  await tab.see(".diagram img");
  const rows = await tab.evaluate(async () => {
    const img = document.querySelector<HTMLImageElement>(".diagram img")!;
    await img.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [img.naturalWidth, img.naturalHeight];
    const context = canvas.getContext("2d")!;
    context.drawImage(img, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const isDark = (x: number, y: number) => {
      const at = (y * canvas.width + x) * 4;
      return data[at + 3]! > 128 && data[at]! < 110;
    };
    const isFilled = (x: number, y: number) => data[(y * canvas.width + x) * 4 + 3]! > 128;
    // The first column of the first box; the name stands in its middle.
    const left = Array.from({ length: canvas.width }, (_, x) => x)
      .find((x) => Array.from({ length: 60 }, (_, y) => isFilled(x, y + 5)).filter(Boolean).length > 25)! + 5;
    const rows = Array.from({ length: 90 }, (_, y) => y);
    const box = rows.filter((y) => isFilled(left, y));
    const [from, to] = [box[0]! + 4, box.at(-1)! - 4];
    const name = rows.filter((y) =>
      y > from && y < to && Array.from({ length: 130 }, (_, x) => isDark(left + x, y)).some(Boolean)
    );
    return { box: [box[0], box.at(-1)], name: [name[0], name.at(-1)] };
  });
  const middle = ([from, to]: (number | undefined)[]) => (from! + to!) / 2;
  expect(Math.abs(middle(rows.name) - middle(rows.box)), JSON.stringify(rows)).toBeLessThanOrEqual(3);
};

/** Lines over and through a formula, and boxes around it, are seen. */
export const drawsLines: Flow = async ({ app, tab, engine }) => {
  await store(app, "lines", ["Formulas", "$\\overline{ab}$ $\\cancel{ab}$ $\\boxed{ab}$ $ab$"]);
  await tab.goto(`${app.url}/c/lines`);
  await tab.until((count) => count === 4, () => document.querySelectorAll(".reply math").length);
  const { box, over, through } = await tab.evaluate(() => {
    const style = (css: string) => getComputedStyle(document.querySelector(`.reply ${css}`)!);
    return {
      box: style("mrow[notation=box]").borderTopStyle,
      over: style("menclose[notation=top]").borderTopStyle,
      through: style("menclose[notation^=up]").backgroundImage,
    };
  });
  expect(box).toBe("solid");
  // The others draw these by themselves.
  if (engine.name !== "chromium") return;
  expect(over).toBe("solid");
  expect(through).toContain("gradient");
};

/** A list of choices that a press opens has no ring around its first row, and keys give it one. */
export const showsNoRingAfterAPress: Flow = async ({ app, tab }) => {
  await store(app, "ring", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/ring`);
  await tab.see(".reply .prose", "Hi");
  await tab.fill(".composer textarea", "A field has its ring, also after a press");
  await tab.click(".reply button", "Message actions");
  await tab.see("[role=menuitem]", /^Branch/);
  const ring = () => [
    document.activeElement!.getAttribute("role"),
    getComputedStyle(document.activeElement!).outlineStyle,
  ];
  expect(await tab.until(([role]) => role === "menuitem", ring)).toEqual(["menuitem", "none"]);
  await tab.press("ArrowDown");
  await tab.until(([role, style]) => role === "menuitem" && style === "solid", ring);
  await tab.press("Escape");
  await tab.gone("[role=menuitem]");
};
