/**
 * Renders text as a QR code. The encoder loads with the first code.
 *
 * Props: `text`, `label` (accessible name).
 */
import { useEffect, useState } from "preact/hooks";

/** Width of the quiet zone in modules. @see ISO/IEC 18004, section 6.3.8 */
const QUIET_ZONE = 4;

/** Dark on light in both themes, as cameras expect. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const [drawing, setDrawing] = useState<{ path: string; size: number }>();
  useEffect(() => {
    let isHere = true;
    import("uqr").then(({ encode }) => {
      const { data, size } = encode(text, { ecc: "M", border: QUIET_ZONE });
      const path = data.flatMap((row, y) => row.map((isDark, x) => isDark ? `M${x} ${y}h1v1h-1z` : "")).join("");
      if (isHere) setDrawing({ path, size });
    }, () => {}); // The code is also shown as text.
    return () => isHere = false;
  }, [text]);
  if (drawing === undefined) return null;
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${drawing.size} ${drawing.size}`}>
      <path d={drawing.path} />
    </svg>
  );
}
