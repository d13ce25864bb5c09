/** Documents for tests: PDF files printed by a browser, hand-written PDF files, and uploads. */
import { expect } from "vitest";
import type { DocumentJson } from "../../../routes/schemas/documents.ts";
import { PATIENCE_MS } from "../app/patience.ts";
import { openBrowser } from "../browser/browser.ts";
import type { TestApp } from "../app/test_app.ts";

export { type PdfObjects, writePdf } from "./pdf_files.ts";

/** Prints HTML as PDF; each item is one page. */
export async function printPdf(pages: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    const sections = pages.map((html) => `<section style="break-after: page">${html}</section>`);
    await page.setContent(`<!doctype html><meta charset="utf-8"><title>Printed</title>${sections.join("")}`);
    return new Uint8Array(await page.pdf({ format: "A5" }));
  } finally {
    await browser.close();
  }
}

/** Uploads a document. */
export async function uploadDocument(
  app: TestApp,
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<Response> {
  const form = new FormData();
  form.append("file", new File([content], name));
  return await app.post("/api/documents", form);
}

/** Uploads a document and waits until its text is read or can't be. */
export async function addDocument(
  app: TestApp,
  name: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<DocumentJson> {
  const response = await uploadDocument(app, name, content);
  expect(response.status).toBe(201);
  return await waitForDocument(app, (await response.json()).id);
}

/** Waits until the text of a document is read or can't be. */
export async function waitForDocument(app: TestApp, id: string): Promise<DocumentJson> {
  let document: DocumentJson | undefined;
  await expect.poll(async () => {
    document = await (await app.get(`/api/documents/${id}`)).json();
    return document!.state;
  }, { timeout: PATIENCE_MS }).not.toBe("extracting");
  return document!;
}

/** Returns the pages of a document. */
export async function readText(app: TestApp, id: string, pages = ""): Promise<{ n: number; text: string }[]> {
  const response = await app.get(`/api/documents/${id}/text${pages && `?pages=${pages}`}`);
  expect(response.status).toBe(200);
  return (await response.json()).pages;
}
