/** Asks before the node is switched off, since its identity goes with it. */
import type { TailnetStatus } from "../../api/types.ts";
import { useStore } from "../../state/store.ts";
import type { TailnetNode } from "../../state/app/tailnet.ts";
import { texts } from "../../texts/texts.ts";
import { ConfirmDialog } from "../auth/ConfirmDialog.tsx";

/** Says what will be gone. */
export function TurnOffDialog(
  { node, status: { url, fqdn }, onClose }: { node: TailnetNode; status: TailnetStatus; onClose: () => void },
) {
  const store = useStore();
  const t = texts.tailnet;
  const isHere = fqdn !== null && globalThis.location.hostname === fqdn;
  return (
    <ConfirmDialog title={t.turnOffAsk} action={t.turnOff} act={turnOff} onClose={onClose}>
      <div class="shown-once">
        {url && <p>{t.turnOffReach(url)}</p>}
        {isHere && <p class="gate-warning">{t.turnOffHere}</p>}
        <p>{t.turnOffWipe}</p>
        <p>{t.turnOffAgain}</p>
      </div>
    </ConfirmDialog>
  );

  async function turnOff(): Promise<void> {
    await node.disable();
    store.toasts.show(t.turnedOff);
  }
}
