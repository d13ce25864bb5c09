/**
 * What a page shows before anybody is in: one column, a mark, a title, and the one thing to do.
 *
 * Props: `title`, `children`; `icon?`.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Toasts } from "../../components/overlays/Toasts.tsx";
import { useTitle } from "../../components/hooks.ts";
import { Icon, type IconName } from "../../components/Icon.tsx";
import { texts } from "../../texts/texts.ts";
import { Banners } from "../shell/Banners.tsx";

/** The frame. The title takes the focus, so that a screen reader begins with what is asked. */
export function GateFrame(
  { title, icon = "key", children }: { title: string; icon?: IconName; children: ComponentChildren },
) {
  const heading = useRef<HTMLHeadingElement>(null);
  useTitle(`${title} · ${texts.product}`);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div class="gate">
      <Banners />
      <main id="main" class="gate-card">
        <span class="gate-mark">
          <Icon name={icon} />
        </span>
        <h1 ref={heading} tabIndex={-1}>{title}</h1>
        {children}
      </main>
      <Toasts />
    </div>
  );
}
