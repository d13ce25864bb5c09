/** Writes OLE2 files, the container of Outlook items and old Office files. */
import { burn, type Entry } from "@kenjiuno/msgreader/lib/Burner.js";

/** A folder of an OLE2 file: streams and folders by their names. */
export interface Ole2Folder {
  [name: string]: Uint8Array | Ole2Folder;
}

/** Types of entries. @see [MS-CFB], section 2.6.1 */
const [STORAGE, STREAM, ROOT] = [1, 2, 5];

/** Writes an OLE2 file. */
export function writeOle2(root: Ole2Folder): Uint8Array<ArrayBuffer> {
  const entries: Entry[] = [{ name: "Root Entry", type: ROOT!, length: 0, children: [] }];
  const add = (folder: Ole2Folder, parent: Entry) => {
    for (const [name, content] of Object.entries(folder)) {
      parent.children!.push(entries.length);
      if (content instanceof Uint8Array) {
        entries.push({ name, type: STREAM!, length: content.length, binaryProvider: () => content });
      } else {
        const entry: Entry = { name, type: STORAGE!, length: 0, children: [] };
        entries.push(entry);
        add(content, entry);
      }
    }
  };
  add(root, entries[0]!);
  return new Uint8Array(burn(entries));
}
