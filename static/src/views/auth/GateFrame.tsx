/**
 * The layout of pages before sign-in: one column, an icon, a title, one task.
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

/** The title takes the focus, so that screen readers start with the question. */
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
