/** Writing and reading in a chat. */
import { expect } from "vitest";
import { makeRgbaPng } from "../../helpers/files/png_files.ts";
import type { Tab } from "../helpers/engines/engine.ts";
import { type Flow, store, untilDraft } from "./flow.ts";

const FIELD = ".composer textarea";
const REPLY = ".reply .prose";

/** A first message, a reply that is seen growing, and the next message after it. */
export const chats: Flow = async ({ app, llm, tab }) => {
  await tab.goto(`${app.url}/new`);
  await tab.fill(FIELD, "Tell me about the tide");
  await tab.press("Enter");
  const call = await llm.nextCall();
  await call.emit("The tide ");
  await tab.see(REPLY, "The tide");
  await call.emit("goes out.");
  await tab.see(REPLY, "The tide goes out.");
  await call.finish();
  await tab.gone("button", "Stop");
  await tab.fill(FIELD, "And then?");
  await tab.press("Enter");
  const second = await llm.nextCall();
  await second.emit("It comes **back**.");
  await second.finish();
  await tab.see(`${REPLY} strong`, "back");
  expect(await tab.evaluate(() => document.querySelectorAll(".message").length)).toBe(4);
};

/** Stop keeps what came; Regenerate makes another version, and both can be read. */
export const stopsAndRegenerates: Flow = async ({ app, llm, tab }) => {
  await store(app, "stop", []);
  await tab.goto(`${app.url}/c/stop`);
  await tab.fill(FIELD, "Count");
  await tab.press("Enter");
  const call = await llm.nextCall();
  await call.emit("One two");
  await tab.see(REPLY, "One two");
  await tab.click("button", "Stop");
  await tab.gone("button", "Stop");
  await call.over;
  await tab.see(REPLY, "One two");
  await tab.click(".reply button", "Regenerate");
  const again = await llm.nextCall();
  await again.emit("Three four");
  await again.finish();
  await tab.see(REPLY, "Three four");
  await tab.click("button", "Previous version");
  await tab.see(REPLY, "One two");
};

/** What is typed stands there after a reload, and goes with the message. */
export const keepsDrafts: Flow = async ({ app, tab }) => {
  await store(app, "draft", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/draft`);
  await tab.see(REPLY, "Hi");
  await tab.fill(FIELD, "Half a thought");
  await untilDraft(app, "draft", "Half a thought");
  await tab.goto(`${app.url}/c/draft`);
  await tab.until(
    (value) => value === "Half a thought",
    () => document.querySelector<HTMLTextAreaElement>(".composer textarea")?.value,
  );
};

/** A composer that grows pushes nothing out of sight: the end stays in view, and a reply is followed. */
export const growsTheComposer: Flow = async ({ app, llm, tab }) => {
  const lines = Array.from({ length: 60 }, (_, n) => `Line ${n}`).join("\n\n");
  await store(app, "grow", ["Write lines", lines]);
  await tab.goto(`${app.url}/c/grow`);
  await tab.see(".reply", /Line 59/);
  const fromEnd = () => {
    const box = document.querySelector(".message-scroll")!;
    return box.scrollHeight - box.scrollTop - box.clientHeight;
  };
  await tab.until((px) => px < 2, fromEnd);
  await tab.click(FIELD);
  for (let line = 1; line <= 8; line++) {
    await tab.driver.type(`line ${line}`);
    await tab.press("Shift", "Enter");
    // In every frame of some: the page corrects itself in one of them, or never.
    await tab.until((px) => px < 2, fromEnd);
  }
  await tab.until(
    (height) => height > 150,
    () => document.querySelector(".composer textarea")!.getBoundingClientRect().height,
  );
  await tab.click("button", "Send");
  const call = await llm.nextCall();
  for (let n = 0; n < 5; n++) {
    await call.emit(`Paragraph ${n}.\n\n${"More words. ".repeat(40)}\n\n`);
    await tab.see(".reply", new RegExp(`Paragraph ${n}\\.`));
    await tab.until((px) => px < 2, fromEnd);
  }
  await call.finish();
};

/** An edited reply is saved, and stands there after a reload. */
export const editsAReply: Flow = async ({ app, tab }) => {
  await store(app, "edit", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/edit`);
  await tab.see(REPLY, "Hi");
  // Without a pointer that hovers, as in this Firefox, it is in the menu.
  if (await tab.evaluate(() => matchMedia("(hover: none)").matches)) {
    await tab.click(".reply button", "Message actions");
    await tab.click("[role=menuitem]", /^Edit/);
  } else await tab.click(".reply button", "Edit");
  await tab.fill(".edit-form textarea", "Good evening");
  await tab.click(".edit-form button", "Save");
  await tab.see(REPLY, "Good evening");
  await tab.gone(".edit-form");
  await tab.goto(`${app.url}/c/edit`);
  await tab.see(REPLY, "Good evening");
};

const PICTURE = { width: 60, height: 40 };

/** Attaches a picture as a person chooses or pastes it; the dialog and the clipboard themselves belong to the system. */
async function addPicture(tab: Tab, how: "choose" | "paste", name: string): Promise<void> {
  const bytes = [...makeRgbaPng(PICTURE.width, PICTURE.height, (x, y) => [x * 4, y * 6, 90, 255])];
  await tab.evaluate(
    (bytes, how, name) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
      if (how === "paste") {
        const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
        Object.defineProperty(event, "clipboardData", { value: data });
        document.querySelector(".composer textarea")!.dispatchEvent(event);
      } else {
        const input = document.querySelector<HTMLInputElement>(".composer input[type=file]")!;
        input.files = data.files;
        input.dispatchEvent(new Event("change", { bubbles: true }));
      }
    },
    bytes,
    how,
    name,
  );
  await tab.see(".image-row li[aria-busy=false] button", new RegExp(name));
}

/** Pictures that are chosen and pasted go with the message, and are seen in it. */
export const sendsPictures: Flow = async ({ app, llm, tab }) => {
  await store(app, "pictures", ["Hello", "Hi"]);
  await tab.goto(`${app.url}/c/pictures`);
  await tab.see(REPLY, "Hi");
  await addPicture(tab, "choose", "chosen.png");
  await addPicture(tab, "paste", "pasted.png");
  await tab.fill(FIELD, "What is this?");
  await tab.press("Enter");
  const call = await llm.nextCall();
  await call.emit("Two pictures");
  await call.finish();
  await tab.see(REPLY, "Two pictures");
  const sizes = await tab.until(
    (all) => all.length === 2 && all.every(([width]) => width! > 0),
    () =>
      [...document.querySelectorAll<HTMLImageElement>(".user-message .message-images img")].map((img) => [
        img.naturalWidth,
        img.naturalHeight,
      ]),
  );
  expect(sizes).toEqual([[PICTURE.width, PICTURE.height], [PICTURE.width, PICTURE.height]]);
};
