// Rules for mistakes; the looks of the code are Prettier's.
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['lib/', 'node_modules/'] },
  ...tseslint.configs.recommended,
  {
    rules: {
      // JSON of the engine and parts of JupyterLab that its types leave out.
      '@typescript-eslint/no-explicit-any': 'off',
      // The models of an open notebook are there.
      '@typescript-eslint/no-non-null-assertion': 'off',
      eqeqeq: 'error'
    }
  }
);
