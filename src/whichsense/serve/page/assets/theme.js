// Light or dark: the system's, until the switch is used; what was chosen here is there before the first paint.
(() => {
  const root = document.documentElement;
  try {
    const theme = JSON.parse(localStorage.getItem('whichsense.theme'));
    if (theme) root.dataset.theme = theme;
  } catch { /* storage is closed to this page: the system decides */ }
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const other = () => ((root.dataset.theme ?? (dark.matches ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark');
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('switch-theme');
    const label = () => { button.textContent = other() === 'dark' ? 'Dark' : 'Light'; };
    button.addEventListener('click', () => {
      root.dataset.theme = other();
      try {
        localStorage.setItem('whichsense.theme', JSON.stringify(root.dataset.theme));
      } catch { /* it lasts as long as this page */ }
      label();
    });
    dark.addEventListener('change', label);
    label();
  });
})();
