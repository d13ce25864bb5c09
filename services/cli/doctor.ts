/** `parlor doctor`: checks the installation and prints problems. */
import { type DoctorConfig, examine } from "../diagnostics/doctor.ts";
import { takeOptions } from "./cli_environment.ts";

/** Text of `parlor doctor --help`. */
export const DOCTOR_HELP = `Usage: parlor doctor [--url URL] [options of parlor serve]

Checks configuration, permissions, addresses, data, backups, disk, clock, programs, and the running server with its model.
It reads every encrypted file and the last backup; PARLOR_BACKUP_PASSPHRASE opens a backup made with a passphrase.
--url also checks the address where users reach Parlor, such as https://chat.example.org.
Exits with code 1 if there is a problem.`;

/** What it has of the world around it. */
export interface DoctorOutside {
  config(rest: string[]): DoctorConfig;
  /** Opens backups that were made with a passphrase. */
  backupPassphrase: string | undefined;
  print(text: string): void;
}

/** @returns 1 when there is a problem, else 0. */
export async function runDoctor(args: readonly string[], outside: DoctorOutside): Promise<number> {
  const { options, rest } = takeOptions(args, { url: true }, { wordCount: 0, usage: "parlor doctor" });
  const findings = await examine({
    config: () => outside.config(rest),
    backupPassphrase: outside.backupPassphrase,
    maxBytes: Infinity,
    url: options.get("url"),
  });
  for (const { level, about, remedy } of findings) {
    outside.print(`${level.padEnd(8)} ${about}`);
    if (remedy !== undefined) outside.print(`${" ".repeat(9)}→ ${remedy}`);
  }
  const problems = findings.filter(({ level }) => level === "problem").length;
  outside.print(
    problems === 0 ? "No problems found." : `${problems} ${problems === 1 ? "problem" : "problems"} found.`,
  );
  return problems === 0 ? 0 : 1;
}
