/** A part of the page that takes files dropped on it. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { texts } from "../../texts/texts.ts";

/** Says so while files are over it. */
export function DropArea({ onFiles, children }: { onFiles: (files: File[]) => void; children: ComponentChildren }) {
  const [isOver, setOver] = useState(false);
  // Every child that is entered and left tells; over the area is who entered more often than left.
  const depth = useRef(0);
  const enter = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    depth.current++;
    setOver(true);
  };
  const leave = (event: DragEvent) => {
    if (hasFiles(event) && --depth.current <= 0) setOver(false);
  };
  const drop = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth.current = 0;
    setOver(false);
    onFiles([...event.dataTransfer?.files ?? []]);
  };
  return (
    <div
      class="drop-area"
      onDragEnter={enter}
      onDragLeave={leave}
      onDragOver={(event) => hasFiles(event) && event.preventDefault()}
      onDrop={drop}
    >
      {children}
      {isOver && (
        <div class="drop-note">
          <strong>{texts.characters.drop}</strong>
          <span>{texts.characters.dropHint}</span>
        </div>
      )}
    </div>
  );
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}
