/**
 * The image of a character or a persona, or the first letter of the name.
 *
 * Props: `name`, `widthPx` (of the layout), `path?` (of the image; `?w=` is added unless `isWhole`), `version?` (time
 * of the last change), `class?`.
 */
import { useLoadedFile } from "./ApiFile.tsx";

/** Requested widths in pixels: few, so that the server resizes few. */
const WIDTHS = [96, 192, 384, 768, 1536];

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
  // The previous image stays until the next one is loaded.
  const image = useLoadedFile(
    path && (isWhole ? path : `${path}?w=${chooseImageWidth(widthPx, globalThis.devicePixelRatio)}`),
    version,
  );
  return (
    <span class={`portrait ${className}`} aria-hidden="true">
      {image?.url
        ? <img src={image.url} alt="" draggable={false} />
        : <span class="portrait-letter" data-letter={getFirstLetter(name)} />}
    </span>
  );
}

/** Returns the width to request for a layout width and the device pixel ratio. */
function chooseImageWidth(placeWidthPx: number, pixelRatio: number): number {
  const widthPx = placeWidthPx * Math.min(pixelRatio, 2);
  return WIDTHS.find((width) => width >= widthPx) ?? WIDTHS.at(-1)!;
}

/** A letter as readers see it, which may be several code points. */
function getFirstLetter(name: string): string {
  const [first] = new Intl.Segmenter().segment(name.trim());
  return first?.segment.toLocaleUpperCase() ?? "";
}
