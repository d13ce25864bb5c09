/** CHARX files, which the sandbox judges: a ZIP with a card and pictures, also behind a picture. */
import { zipSync } from "fflate";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { CardCodec } from "../../../services/characters/card/card_codec.ts";
import { sillyTavernCard } from "../../helpers/files/cards.ts";
import { fixtureImage } from "../../helpers/files/image_files.ts";
import { picture } from "../../helpers/files/pictures.ts";
import { joined, jsonText, mutateBytes, mutateJson } from "../mutations.ts";
import { claim, claimSame, target, unlessRefusedLater } from "../target.ts";
import { parseCardText, serializeCard } from "../../../services/characters/card/card.ts";

const CARD = {
  ...sillyTavernCard("Fox"),
  spec: "chara_card_v3",
  spec_version: "3.0",
};
const ICON = { type: "icon", uri: "embeded://assets/icon/images/main.png", name: "main", ext: "png" };
const JPEG = fixtureImage("quarters.jpg");

let folder: string;
let sandbox: Sandbox;

function zipOf(card: string, more: Record<string, Uint8Array> = {}): Uint8Array<ArrayBuffer> {
  const files = { "card.json": new TextEncoder().encode(card), "assets/icon/images/main.png": picture(1), ...more };
  return zipSync(files) as Uint8Array<ArrayBuffer>;
}

const whole = () => JSON.stringify({ ...CARD, data: { ...CARD.data, assets: [ICON] } });

export const CHARX = target<Uint8Array>({
  name: "charx",
  async open() {
    sandbox = new Sandbox();
    folder = await Deno.makeTempDir({ prefix: "fuzz-charx-" });
  },
  async close() {
    await sandbox.close();
    await Deno.remove(folder, { recursive: true });
  },
  generate(random) {
    const assets = mutateJson(random, [ICON, { type: "emotion", uri: "embeded://assets/joy.png", name: "joy" }]);
    const json = mutateJson(random, { ...CARD, data: { ...CARD.data, assets } });
    const names = random.list(
      random.size(5),
      () =>
        random.pick([
          "assets/joy.png",
          "../out.png",
          "a\\b.png",
          "/etc/passwd",
          "__proto__",
          "card.json/",
          "CON.png",
          "é.png",
        ]),
    );
    const zip = zipOf(jsonText(random, json), Object.fromEntries(names.map((name) => [name, picture(2)])));
    const file = random.chance(0.3) ? joined(JPEG, zip) : zip;
    return random.chance(0.6) ? mutateBytes(random, file) : file;
  },
  async run(bytes) {
    const path = `${folder}/card.charx`;
    await Deno.writeFile(path, bytes);
    const file = await unlessRefusedLater(() => new CardCodec(sandbox).readFile(path));
    if (file === undefined) return;
    claimSame(parseCardText(serializeCard(file.card)), file.card, "A card changes when it is read again");
    for (const { path } of file.others ?? []) {
      claim(!/^\/|(^|\/)\.\.(\/|$)|\\/.test(path), () => `A file leads outside: ${path}`);
    }
  },
  cases: {
    "a directory that states 4 GiB": () => {
      const zip = zipOf(whole());
      const view = new DataView(zip.buffer);
      view.setUint32(zip.length - 10, 0xffffffff, true);
      return zip;
    },
    "a card that inflates a thousandfold": () => zipOf(`{"name":"${" ".repeat(9_000_000)}"}`),
    "a card of 50,000 levels": () => zipOf(`${'{"data":'.repeat(50_000)}1${"}".repeat(50_000)}`),
  },
});
