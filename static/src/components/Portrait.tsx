/**
 * The image of a character or a persona, or the first letter of the name.
 *
 * Props: `name`, `widthPx` (of the layout), `path?` (of the image; `?w=` is added unless `isWhole`), `version?` (time
 * of the last change), `class?`.
 */
import { useEffect, useState } from "preact/hooks";
import { chooseImageWidth } from "../state/characters/portraits.ts";
import { useStore } from "../state/store.ts";

/** Hidden from screen readers: the name is next to it. */
export function Portrait(
  { name, widthPx, path, version = "", isWhole = false, class: className = "" }: {
    name: string;
    widthPx: number;
    path?: string;
    version?: string;
    isWhole?: boolean;
    class?: string;
  },
) {
  const url = useImage(
    path && (isWhole ? path : `${path}?w=${chooseImageWidth(widthPx, globalThis.devicePixelRatio)}`),
    version,
  );
  return (
    <span class={`portrait ${className}`} aria-hidden="true">
      {url
        ? <img src={url} alt="" draggable={false} />
        : <span class="portrait-letter" data-letter={firstLetter(name)} />}
    </span>
  );
}

/** Returns the image once it is loaded. The previous one stays until then. */
function useImage(address: string | undefined, version: string): string | undefined {
  const { portraits } = useStore();
  const key = `${address} ${version}`;
  const [shown, setShown] = useState<string>();
  const here = address === undefined ? undefined : portraits.find(key);
  useEffect(() => {
    if (address === undefined || here !== undefined) return setShown(here);
    let isWanted = true;
    const { url, leave } = portraits.load(key, address);
    void url.then((found) => isWanted && setShown(found));
    return () => {
      isWanted = false;
      leave();
    };
  }, [key]);
  return here ?? (address === undefined ? undefined : shown);
}

/** A letter as readers see it, which may be several code points. */
function firstLetter(name: string): string {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment.toLocaleUpperCase() ?? "";
}
