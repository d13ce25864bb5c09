/** A document that is read and saved at the same time. */
import { expect, test } from "vitest";
import { ApiError } from "../../../../static/src/api/client.ts";
import { type StoredVersion, VersionedEditor } from "../../../../static/src/state/documents/versioned_editor.ts";

interface Fields {
  text: string;
}

test("a read that arrives after a save doesn't bring the earlier text back", async () => {
  const stored = { text: "One", version: 1 };
  const read = (): StoredVersion<string, Fields> => ({
    document: "d",
    data: { text: stored.text },
    version: `${stored.version}`,
  });
  let isOver = Promise.resolve();
  const editor = new VersionedEditor<string, Fields>({
    id: "d1",
    kind: "preset",
    async read() {
      const found = read();
      await isOver;
      return found;
    },
    write({ text }) {
      Object.assign(stored, { text, version: stored.version + 1 });
      return Promise.resolve(read());
    },
    isComplete: () => true,
  });
  await editor.open();
  const gate = Promise.withResolvers<void>();
  isOver = gate.promise;
  const late = editor.open();
  editor.set({ text: "Two" });
  await editor.save();
  gate.resolve();
  await late;
  expect(editor.data.value).toEqual({ text: "Two" });
});

test("two pauses in typing during one slow save lead to one more save, which isn't a conflict", async () => {
  const stored = { text: "One", version: 1 };
  const read = (): StoredVersion<string, Fields> => ({
    document: "d",
    data: { text: stored.text },
    version: `${stored.version}`,
  });
  const gate = Promise.withResolvers<void>();
  const sent: [text: string, version: string][] = [];
  const editor = new VersionedEditor<string, Fields>({
    id: "d1",
    kind: "preset",
    read: () => Promise.resolve(read()),
    async write({ text }, version) {
      sent.push([text, version]);
      await gate.promise;
      if (version !== read().version) throw new ApiError(412, { code: "revision_mismatch", message: "Changed" });
      Object.assign(stored, { text, version: stored.version + 1 });
      return read();
    },
    isComplete: () => true,
  });
  await editor.open();
  editor.set({ text: "Two" });
  const saves = [editor.save()];
  await expect.poll(() => sent.length).toBe(1);
  editor.set({ text: "Three" });
  saves.push(editor.save(), editor.save());
  gate.resolve();
  await Promise.all(saves);
  expect(sent).toEqual([["Two", "1"], ["Three", "2"]]);
  expect(editor.clash.value).toBeUndefined();
});
