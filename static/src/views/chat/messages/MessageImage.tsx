/** An image of a message, which has its place before it's loaded. */
import { useReducer } from "preact/hooks";
import { useFileUrl } from "../../../components/ApiFile.tsx";
import { findImageSize, noteImageSize } from "../../../state/chat/image_sizes.ts";

/** Longest side, in rem. As in chat.css. */
const MAX_REM = 20;

/** The image. */
export function MessageImage({ url, alt }: { url: string; alt: string }) {
  const src = useFileUrl(url);
  const [, update] = useReducer<number, void>((count) => count + 1, 0);
  const size = findImageSize(url);
  return (
    <img
      {...size}
      style={size && { width: `min(${size.width}px, ${MAX_REM}rem, ${MAX_REM * size.width / size.height}rem)` }}
      src={src}
      alt={alt}
      loading="lazy"
      decoding="async"
      onLoad={({ currentTarget: { naturalWidth: width, naturalHeight: height } }) => {
        // An image that is embedded in its message needs no note.
        if (url.startsWith("/") && width > 0 && noteImageSize(url, { width, height })) update();
      }}
    />
  );
}
